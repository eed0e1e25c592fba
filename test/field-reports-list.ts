/**
 * What test/field-reports.ts can't read from the names of tests: what went wrong elsewhere, in a line, and of reports
 * without a test why there is none. A report has tests, or one of `without` and `later`, never both.
 */
export interface FieldReport {
  readonly id: string;
  /** For somebody who has never read the report. */
  readonly symptom: string;
  /** It can't happen here, or is not ours: the reason. */
  readonly without?: string;
  /** The feature that it will be held off by. */
  readonly later?: string;
}

export interface ReportArea {
  readonly name: string;
  readonly reports: readonly FieldReport[];
}

const report = (id: string, symptom: string, more: Pick<FieldReport, "without" | "later"> = {}): FieldReport => ({
  id,
  symptom,
  ...more,
});

export const AREAS: readonly ReportArea[] = [
  {
    name: "Disks and installation",
    reports: [
      report("B001", "an array left on the target keeps it busy, and the installation hangs"),
      report("B002", "a selector fits a second disk too, whose data is erased"),
      report("B003", "the document selects another disk than the one the system runs from, and nothing is said"),
      report("B004", "no disk fits, and the message names an empty path"),
      report("B005", "the system is installed onto the stick that it was started from"),
      report("B007", "no disk fits, and nobody is told which disks there are"),
      report("B008", "the disk is too small, which shows only halfway through"),
      report("B009", "after a reboot the disks have other names, and the wrong one is meant"),
      report("B010", "the disk that was shown is not the one that is written"),
      report("B011", "an upgrade looks for its disk anew and finds another one", {
        later: "upgrades (`cctl upgrade`)",
      }),
      report("B012", "wiping fails as busy: LVM stands on an array on the disk"),
      report("B014", "an array of another system is silently adopted"),
      report("B015", "old metadata that nobody looked for make another system take the disk over"),
      report("B016", "a probe in the background holds the disk, and the installation fails as busy"),
      report("B017", "names of partitions are put together by hand, and are wrong on NVMe and eMMC"),
      report("B018", "an installation that reports success does not boot"),
      report("B019", "on a disk with sectors of 4096 bytes the written table can't be seen"),
      report("B020", "the boot partition of a 4Kn disk can't be mounted by the firmware"),
      report("B021", "4Kn disks stop to boot after the installer was rewritten"),
      report("B023", "two paths to one disk are offered as two disks"),
      report("B024", "kinds of devices that nobody thought of are taken for disks, or not for any"),
      report("B025", "stable names are refused, so people write sda and hit another disk"),
      report("B026", "one document for a fleet of unlike machines takes the disk with the data"),
      report("B028", "an installation onto a layout made by hand takes the other disk"),
      report("B109", "after an unplanned restart right after the installation, files are empty"),
      report("B176", "the firmware refuses a boot entry, and the installation dies at its last step"),
      report("B177", "a boot order with entries that do not exist can't be rewritten, and the installation fails", {
        without: "no entry of the firmware is read or written: each disk has the path of removable media",
      }),
      report("B178", "each installation adds a boot entry, until the firmware's memory is full", {
        without: "no entry of the firmware is ever made: each disk has the path of removable media",
      }),
      report("B179", "the medium is started again after the installation, and installs again"),
    ],
  },
  {
    name: "Arrays",
    reports: [
      report("B029", "a mirror with one disk missing is not started at boot"),
      report("B030", "the boot stops for ever at a degraded array"),
      report("B031", "an array comes back under another name, and what uses the old one fails"),
      report("B033", "a mirrored system works until it is started cold with one disk gone"),
      report(
        "B034",
        "the system can't be installed onto two disks, only onto an array made by hand, which is taken down",
      ),
    ],
  },
  {
    name: "Overlay and virtual address",
    reports: [
      report("B035", "a peer's name gets another address, and the tunnel never comes back"),
      report("B036", "nothing is done because the text of the endpoint is still the same"),
      report("B037", "a peer vanishes because its name did not resolve at boot"),
      report("B038", "packets of the overlay are larger than the link takes"),
      report("B041", "large packets vanish on the way, small ones pass, and nothing says so"),
      report("B042", "two nodes hold the virtual address, and nobody notices"),
      report("B043", "multicast is filtered, and the virtual address is on both machines"),
      report("B044", "after the holder stood still for seconds, clients go on asking the wrong machine"),
      report("B045", "a controller that starts takes the virtual address from the one that has it"),
      report("B046", "the virtual address ends up as an address of the node"),
      report("B047", "etcd's address moves away with the virtual address"),
      report(
        "B048",
        "another virtual address on a living cluster leaves the old one behind and the new one unreachable",
      ),
      report("B049", "the virtual address is never set, because of its link or its network, and nothing says why"),
      report("B050", "a long VRRP password is silently cut, so that different ones match"),
      report("B052", "two clusters on one network announce the same virtual router and fight"),
      report("B053", "after all were off, the virtual address comes only with the machine that had it last"),
      report("B054", "a VLAN or a bridge on the link of the virtual address takes it away"),
    ],
  },
  {
    name: "The document",
    reports: [
      report("B065", "a number with a leading zero is read as another number"),
      report("B067", "a key is there twice, and the last one silently wins"),
      report("B068", "merge keys of YAML 1.1 become keys of that name"),
      report("B069", "a tab makes the document unreadable, and the message does not say so"),
      report("B070", "files saved on Windows are not recognised"),
      report("B072", "the first line is missing, so the whole file is ignored"),
      report("B073", "one bad line drops the whole document with a line in some log"),
      report("B074", "an unquoted no is false to one reader and text to the other"),
      report("B075", "numbers and booleans as label values fail only in the cluster"),
      report("B076", "a block in the wrong column is ignored"),
      report("B077", "a tool writes a document that the node then refuses"),
      report("B078", "an empty value in a required field makes the machine start over and over"),
    ],
  },
  {
    name: "Sources of the document",
    reports: [
      report("B079", "a seed medium that was left in overrules what the node was given"),
      report("B081", "of a seed's files one is used and another silently not"),
      report("B082", "a source on the network is skipped because it is not up yet"),
      report("B083", "nothing of the management starts because no source was found in time"),
      report("B084", "user-data with nothing but a key masks the configuration in the image"),
    ],
  },
  {
    name: "Hostname and identity",
    reports: [
      report("B055", "two machines of one name replace each other in the cluster"),
      report("B056", "a second controller joins under the name of the first and harms etcd"),
      report("B180", "after a move to another address the node keeps failing on the old one, and nothing says why"),
      report("B181", "a lease changes, and everything that has the old address is wrong"),
      report("B185", "an address that comes to the link later restarts the kubelet again and again"),
      report("B058", "the name of the node is not the one in the document"),
    ],
  },
  {
    name: "The host's network",
    reports: [
      report("B039", "a link that is named in the configuration loses the MTU that DHCP had given", {
        later: "links of the host in the document: until then no file of a link but an overlay's is written",
      }),
      report("B182", "after a change to a fixed address the leased one is still there", {
        later: "links of the host in the document",
      }),
      report("B183", "the installed system gets another address than the live one, and nobody finds it", {
        later: "links of the host in the document: the same DHCP identity before and after the installation",
      }),
      report("B184", "the address typed in at the console is not applied", {
        later: "links of the host in the document: a form for them on the console",
      }),
    ],
  },
  {
    name: "Time",
    reports: [
      report("B059", "without a battery it is 1970, and nothing that needs certificates works"),
      report("B060", "services start before the time is right, fail, and are not tried again"),
      report("B061", "certificates are made with a wrong clock and are useless once it is right"),
      report("B062", "a certificate that is not valid yet ends the program for good"),
      report("B063", "a node that believes in 1970 can't be reached to be repaired"),
      report("B064", "the clock falls back to the age of the image"),
    ],
  },
  {
    name: "Names in certificates",
    reports: [
      report("B089", "only one controller's certificate has the names that clients use"),
      report("B090", "the virtual address is in no certificate"),
      report("B091", "the kubeconfig leads to an address that the certificate does not name"),
      report("B092", "the API server's certificate lacks a name by which pods call it", {
        without: "k0s makes that certificate and its cluster names; `cluster.subjectAltNames` adds one that is missing",
      }),
    ],
  },
  {
    name: "Add-ons and manifests",
    reports: [
      report("B111", "an add-on that is gone from the document is still there, or all of them vanish"),
      report("B112", "a change of a field that nobody classified is ignored, and reported as done"),
      report("B113", "a new chart version in the document never becomes a release"),
      report("B114", "a quoted false turns a feature on"),
      report("B115", "a chart that fails is seen by nobody who does not know where to look"),
    ],
  },
  {
    name: "Join tokens",
    reports: [
      report("B086", "a node that was deleted in the cluster can't come back with its old token"),
      report("B087", "an expired token is an unclear failure, and can't be exchanged"),
      report("B088", "a token without its secret, or for another role, is refused late and vaguely"),
    ],
  },
  {
    name: "Upgrade, reset, encryption, old clusters",
    reports: [
      report("B097", "a copied system is damaged where the disk was full, and is started all the same"),
      report("B130", "a reset that failed makes the next reset impossible"),
      report("B131", "what a reset leaves of one network plug-in breaks the installation of another"),
      report("B133", "a node alone in its cluster can't be reset, or a reset leaves a machine that does not start"),
      report("B173", "new firmware changes what the TPM measures, and a volume stays locked"),
      report("B174", "binding a volume to the TPM again fails, and is tried for ever"),
      report("B175", "a second upgrade before the restart into the first breaks what the TPM opens"),
      report("B108", "k0s leaves programs of no content behind, and never writes them again", {
        without:
          "k0s unpacks a program again whose size is not what it holds, since its release 1.25 (pull request 2014)",
      }),
      report("B189", "after power cuts the cluster's SQLite database is malformed, and the cluster is gone", {
        later: "backup and restore (`cctl backup`)",
      }),
      report("B190", "after certificates were renewed, new nodes and restored ones get the old ones", {
        later: "backup and restore; what a joining node gets is the CA, which k0s never renews",
      }),
      report("B188", "a node that was off for a year comes back to expired certificates"),
    ],
  },
  {
    name: "Consoles",
    reports: [
      report("B116", "the serial line falls back to another speed after the boot loader"),
      report("B117", "the screen is on the first serial port, the BMC listens on the second"),
      report("B119", "the screen is for graphics cards only, or floods a serial line"),
      report("B120", "the pairing code is shown on one console, the operator looks at another"),
    ],
  },
  {
    name: "Network boot",
    reports: [
      report("B122", "the server of the document is away for minutes, and the machine gives up for good"),
      report("B123", "one lost packet ends the network boot"),
      report("B124", "an address on the kernel command line is read wrongly"),
      report("B125", "the boot firmware can't speak TLS with the server"),
    ],
  },
  {
    name: "API and operators' certificates",
    reports: [
      report("B138", "certificates made for another purpose worked, until they did not"),
      report("B139", "the operator's certificate expired, and the node looks broken"),
      report("B141", "a restarted service shows a second pairing code and forgets the wrong tries"),
      report("B153", "a path written in another way gets around the check of the role"),
      report("B154", "a malformed request ends the service"),
      report("B155", "the limit of the body does not count a stream without a length"),
      report("B186", "the audit names a role, not who did it"),
    ],
  },
  {
    name: "State database",
    reports: [
      report("B142", "two builds of SQLite write one file, and it breaks"),
      report("B143", "readers find the database malformed while somebody writes"),
      report("B144", "after a power cut the records are gone or malformed"),
      report("B145", "the start fails because the one before has not let go of the database yet"),
      report("B147", "a copy of the database files, taken one by one, is broken"),
    ],
  },
  {
    name: "Runtime",
    reports: [
      report("B148", "now and then a certificate of a foreign CA is accepted"),
      report("B150", "the handler can't see whose certificate it was"),
      report("B151", "the runtime calls a connection authorised that is not"),
      report("B152", "on a processor without AVX2 the program does not run", {
        later: "images whose program is built on the runtime's baseline build",
      }),
      report("B156", "there is no way to ask the HTTP server for the client's certificate"),
      report("B157", "a program that never ends makes the service hang with it"),
      report("B158", "a program that says a lot blocks because nobody reads it"),
      report("B159", "hundreds of embedded files make the program crash or grow", {
        without: "nothing is embedded but SQLite's native module; all else is code, or lies in the image",
      }),
    ],
  },
  {
    name: "Inventory",
    reports: [
      report("B160", "what a tool prints for people is read by the program, and one odd name breaks it"),
      report("B162", "a serial number is wanted that the machine does not show"),
      report("B163", "serial numbers with padding, or the same one twice"),
    ],
  },
  {
    name: "Day two",
    reports: [
      report(
        "B101",
        "the only node of a cluster is drained, which can never end; or a budget stops it, and nobody says which",
      ),
      report("B165", "the plan says that nothing changes, the apply changes something"),
      report("B166", "a bad change cuts the node off, and there is no way back but going there"),
      report("B167", "addresses of the old configuration stay beside the new ones", {
        without: "addresses and links don't change in service: the fields are immutable, and the node writes none",
      }),
      report("B168", "data gets the size of the image, not of the disk"),
      report("B169", "logs fill the disk, and the node's own records with it"),
      report("B170", "the document of a worker is applied to the only controller"),
      report("B171", "a change after which the cluster does not come up is left as it is"),
      report("B172", "the stored document can't be read any more, and the node is stuck"),
    ],
  },
];
