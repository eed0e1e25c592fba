/**
 * Every code of a finding that a node makes when it plans: the document is valid, this machine is the question. A
 * contract like that of config/messages/codes.ts: a code keeps its meaning for ever.
 */
export const PLANNING_CODES = {
  "disk-not-found": {
    meaning: "no disk of this machine is the one that the document means",
    cure: "cctl disks lists every disk with the reason why not; correct the path or the selector",
  },
  "disk-ambiguous": {
    meaning: "several disks match where it must be exactly one",
    cure: "make the selector narrower: a serial or wwn names one disk",
  },
  "claimed-twice": {
    meaning: "two entries of the document mean the same disk",
    cure: "name another disk in one of them",
  },
  "holds-data": {
    meaning: "a disk holds data and the document does not say wipe: true",
    cure: "name another disk; or wipe: true on that entry, which destroys what is on it",
  },
  "in-use": {
    meaning: "a disk is mounted, swapped on or open, which wipe never covers",
    cure: "free it first: unmount, swapoff, stop who holds it",
  },
  held: {
    meaning: "an array or mapping holds a disk together with others that may not be lost",
    cure: "wipe: true on every member, or take the array down by hand",
  },
  unreadable: {
    meaning: "a disk could not be read well enough to decide about it",
    cure: "check the disk and its cabling: nothing is done on a guess",
  },
  "installed-elsewhere": {
    meaning: "the node runs from another disk than install.disk names",
    cure: "boot the live system to install onto that disk, or correct install.disk",
  },
  "system-array": {
    meaning: "an array of the document has the name of one of the mirrored system's own",
    cure: "choose another name",
  },
  "own-data": {
    meaning: "a disk holds what this node itself made",
    cure: "wipe: true is not enough for that: it takes --wipe-own as well, at the claim, at a retry or on the console",
  },
  "own-incomplete": {
    meaning: "what this node made is there, but not all of it",
    cure: "connect the missing disk; or give up what was on it, with wipe: true and --wipe-own",
  },
  "own-differs": {
    meaning: "what this node made is there, but not as the document says now",
    cure: "correct the document to what is there; or give up what is on it: wipe: true, and --wipe-own",
  },
  "same-uuid": {
    meaning: "another disk holds a copy of what is mounted or opened by its UUID",
    cure: "take the copy out of the machine: chance would decide which of the two is written",
  },
  adopted: {
    meaning: "storage of an earlier installation for this very purpose is taken over as it is",
    cure: "nothing to do",
  },
  "point-not-empty": {
    meaning: "something lies at a mount point of the document, and the mount would hide it",
    cure: "choose another mount point: the message says what lies there",
  },
  "earlier-stack": {
    meaning: "k0s was started with manifests that the document, corrected since, does not have any more",
    cure: "give the document the stack back; or reset the node",
  },
  "k0s-mount": {
    meaning: "k0s was started with a filesystem on a folder of its own that the document does not mount any more",
    cure: "give the document that mount back; or reset the node",
  },
  "kernel-name": {
    meaning: "a device name that can be another disk at the next boot",
    cure: "use the stable name in the hint",
  },
  "mixed-sectors": {
    meaning: "members of one array have sectors of different sizes",
    cure: "take disks of one sector size",
  },
  "unequal-sizes": {
    meaning: "members of one array differ in size, and what is above the smallest is lost",
    cure: "take disks of one size, or live with the loss",
  },
  "array-not-found": {
    meaning: "no array of this node has this name",
    cure: "cctl status lists the arrays",
  },
  "array-lost": {
    meaning: "the array does not run, or has lost more disks than it can",
    cure: "connect its disks and restart the node; or restore a backup",
  },
  "array-busy": {
    meaning: "the array is being rebuilt or synchronised, and no working member is replaced meanwhile",
    cure: "wait until that is over: cctl status shows its progress",
  },
  "no-redundancy": {
    meaning: "an array of level 0 can't do without any of its disks",
    cure: "restore it from a backup",
  },
  "not-a-member": {
    meaning: "the disk to be replaced is not one of the array's",
    cure: "name one that the hint lists",
  },
  "last-copy": {
    meaning: "the disk to be replaced is the only one that has the whole system",
    cure: "name the disk that failed or is gone",
  },
  "still-working": {
    meaning: "both disks of a mirrored system work, and a request takes out neither",
    cure: "take the one that shall go out of the machine, then ask again",
  },
  "already-member": {
    meaning: "the disk that shall come is one of the array's already",
    cure: "name a disk that is not in use",
  },
  "other-missing": {
    meaning: "another disk of the array is missing, and would be replaced instead of the one named",
    cure: "replace the missing disk first",
  },
  "member-too-small": {
    meaning: "the disk is smaller than the smallest member of the array",
    cure: "take a disk at least as large",
  },
  "spare-too-small": {
    meaning: "a spare is smaller than the members that it may have to stand in for",
    cure: "take a spare at least as large as the smallest member",
  },
  "write-hole": {
    meaning: "levels 5 and 6 can lose what is being written at a power cut",
    cure: "level 1 or 10, or a UPS",
  },
  "sector-size": {
    meaning: "a disk has sectors of a size that is not supported",
    cure: "take a disk with sectors of 512 or 4096 bytes",
  },
  "not-bootable": {
    meaning: "the firmware that has started this machine can't start it from that disk",
    cure: "set the firmware to UEFI and start the medium again; or name a disk with sectors of 512 bytes",
  },
  "disk-too-small": {
    meaning: "the disk is smaller than what has to be on it",
    cure: "take a larger disk: the message says how much is needed",
  },
  installed: {
    meaning: "the disk holds an installed Corium",
    cure: "--wipe-own installs it again and gives up what it held",
  },
  "not-in-release": {
    meaning: "this image does not hold what the document asks for",
    cure: "take the block out, or install a release that has it",
  },
  "no-tpm2": {
    meaning: "a volume is to be opened by a TPM 2 that this machine does not have",
    cure: "switch the TPM on in the firmware's setup; or unlock: passphrase",
  },
  "pcr7-unmeasured": {
    meaning:
      "the TPM measures nothing that a volume could be bound to: Secure Boot is off, or a BIOS started the machine",
    cure: "Secure Boot; or the kernel argument corium.luks-pcr7=acknowledged, when a disk that leaves is all that is feared",
  },
  "secret-too-late": {
    meaning: "the passphrase of a volume lies behind the overlay, which comes up after it",
    cure: "another source for the passphrase",
  },
  missing: {
    meaning: "something that this machine can't do without is not given",
    cure: "the hint says what is to be given",
  },
  "no-cgroup2": {
    meaning: "the kernel has no cgroup v2 hierarchy",
    cure: "start the kernel without arguments that turn cgroup v2 off",
  },
  memory: { meaning: "the machine has too little memory, or little", cure: "more memory, or another role" },
  "k0s-missing": { meaning: "the k0s of the image does not answer", cure: "install the image again" },
  "k0s-version": {
    meaning: "the document asserts another k0s than the image holds",
    cure: "install the image with that version, or take kubernetes.version out",
  },
  "old-k0s": {
    meaning: "data of another k0s installation lies at /var/lib/k0s",
    cure: "take the data away, or reset the node",
  },
  "range-overlap": {
    meaning: "a cluster range holds the node's own network, gateway or name server",
    cure: "choose another podCIDR or serviceCIDR",
  },
  "overlay-swallows": {
    meaning: "an allowed range takes something into the tunnel that must stay outside",
    cure: "narrow allowedIPs",
  },
  "overlay-mtu": {
    meaning: "an overlay's packets are larger than what carries them",
    cure: "a smaller mtu on the overlay",
  },
  "overlay-name": {
    meaning: "a link of this machine has the name of an overlay",
    cure: "another name for the overlay",
  },
  "no-link": {
    meaning: "there is no interface to hold the virtual address",
    cure: "name a link of this machine in ha.interface",
  },
  "vip-off-subnet": {
    meaning: "the virtual address is in no network of its interface",
    cure: "an address of the network that the interface is in",
  },
  "vip-boundary": {
    meaning: "the virtual address is the first or last of its network",
    cure: "an address between the first and the last",
  },
  "vip-prefix": {
    meaning: "the virtual address has another prefix length than the network of its interface",
    cure: "the prefix length of that network",
  },
  "vip-own": {
    meaning: "the virtual address is an address of the node itself",
    cure: "a free address: the virtual one belongs to no node",
  },
  "peer-own": {
    meaning: "the node itself is among the peers that it sends VRRP to",
    cure: "the other controllers only; each document has another list",
  },
  "vip-gateway": { meaning: "the virtual address is the gateway", cure: "a free address" },
  "vip-taken": { meaning: "somebody answers for the virtual address already", cure: "a free address" },
  "vrid-taken": {
    meaning: "the virtual router id of the document is announced on the network already",
    cure: "another ha.virtualRouterID; or a join, if what announces it is this very cluster",
  },
  "cluster-exists": {
    meaning: "the cluster that the document would found is there already",
    cure: "give this node a join, or stop the other cluster",
  },
  "endpoint-elsewhere": {
    meaning: "cluster.endpoint does not resolve to the virtual address",
    cure: "correct the name's record, or name the address itself",
  },
  "leased-address": {
    meaning: "the address of a controller is leased",
    cure: "give it a fixed address: a static one, or a reservation",
  },
  "k0s-schema": {
    meaning: "k0s will refuse what the patch makes of its configuration",
    cure: "correct k0s.patch at the path",
  },
  "k0s-unknown-key": {
    meaning: "the patch has a key that k0s does not know",
    cure: "the hint names the nearest key that k0s knows",
  },
  "no-balancer": {
    meaning: "one of several controllers, and nothing leads to all of them",
    cure: "ha; or cluster.endpoint of a load balancer; or node-local load balancing by k0s.patch",
  },
  "port-taken": { meaning: "the patch gives somebody the port of the node's API", cure: "another port, e.g. 7445" },
} as const satisfies Readonly<Record<string, { readonly meaning: string; readonly cure: string }>>;

export type PlanningCode = keyof typeof PLANNING_CODES;
