/**
 * GRUB's configuration files. One text for BIOS and UEFI; the traps are those of GRUB script: no `${x:-y}`,
 * an unset variable in a test is an error that is logged and passed over, `-gt` compares integers,
 * and neither `read` nor `eval` is in Debian's signed GRUB.
 */

/** Kernel arguments of every boot; what a person adds comes after them and wins. */
const FIXED_ARGS = [
  "boot=corium",
  "ro",
  "quiet",
  "panic=10",
  "net.naming-scheme=v257",
  "systemd.gpt_auto=0",
  // The backup counts when the primary table is damaged: it is, for a moment, when its last name is written.
  "gpt",
  // Firmware tables could otherwise bring a root password, keys and units (man systemd.system-credentials).
  "systemd.import_credentials=no",
  "noresume",
  "raid=noautodetect",
];

/** Used unless the arguments given name a console themselves. */
const DEFAULT_CONSOLES = "console=tty0 console=ttyS0,115200";

/** Instead of the node, or of the live system: the menu, with file systems checked and damaged ones not mounted. */
const RESCUE_ARGS = "corium.rescue=1 systemd.unit=corium-rescue.target";

export const fixedKernelArgs = (): string => FIXED_ARGS.join(" ");

/** A name without a password: entries boot, but nobody gets the editor or the command line of GRUB. */
const PROLOGUE = `set superusers="corium"
export superusers
if serial --unit=0 --speed=115200; then
  terminal_input console serial
  terminal_output console serial
fi
set pager=0
set consoles="${DEFAULT_CONSOLES}"
`;

/** Modules of the BIOS core image; the signed EFI image has them built in, but for biosdisk. */
export const BIOS_MODULES = [
  "biosdisk",
  "part_gpt",
  "part_msdos",
  "fat",
  "ext2",
  "iso9660",
  "normal",
  "configfile",
  "linux",
  "loadenv",
  "regexp",
  "test",
  "probe",
  "search",
  "search_fs_file",
  "search_label",
  "serial",
  "terminal",
  "echo",
  "sleep",
  "reboot",
  "ls",
  "minicmd",
  "true",
];

/**
 * `/EFI/debian/grub.cfg` on the ESP of an installed disk; the same for every installation. Beside it lie
 * `/corium/env` (bootenv.ts) and `/corium/id.cfg` (`set installation=ID`).
 */
export function installedGrubConfig(): string {
  return `# Corium: boot loader of an installed disk. Written by the installer, the same on every disk.
${PROLOGUE}# Hidden: only Escape brings the menu. Noise on a serial line would else open the editor, which asks for a password
# and waits for ever.
set timeout_style=hidden
set timeout=2
set default=0

# The disk that this file came from.
set own=""
regexp --set=1:own '^(hd[0-9]+)' "$root"
set installation=""
if [ -f ($own,gpt2)/corium/id.cfg ]; then
  source ($own,gpt2)/corium/id.cfg
fi

# The newest environment of this installation; on a tie the one without a trial. Other installations are ignored.
set best=0
set disk=""
set chosen="A"
set trial=""
set state_A="good"
set state_B="good"
for file in (hd*,gpt2)/corium/env; do
  set candidate=""
  if regexp --set=1:candidate '^\\((hd[0-9]+),gpt2\\)' "$file"; then
    set id="" ; set gen=0 ; set good="" ; set try="" ; set tried="" ; set stA="" ; set stB=""
    if load_env -f "$file" id gen good try tried stA stB; then
      if [ "$id" = "$installation" ]; then
        set better=""
        if [ "$gen" -gt "$best" ]; then set better=1; fi
        if [ "$gen" -eq "$best" -a -n "$trial" -a "$try" = "-" ]; then set better=1; fi
        if [ -n "$better" ]; then
          set best="$gen" ; set disk="$candidate" ; set chosen="$good"
          set state_A="$stA" ; set state_B="$stB" ; set trial=""
          if [ "$try" = "A" -o "$try" = "B" ]; then set trial="$try"; fi
        fi
      fi
    fi
  fi
done
if [ -z "$disk" ]; then
  echo "corium: no usable boot environment, booting slot A of the disk this came from"
  set disk="$own"
fi

# A trial is cleared everywhere before it starts; where that can't be written there is no trial.
if [ -n "$trial" ]; then
  set try="-" ; set tried="$trial" ; set slot="$trial"
  for file in (hd*,gpt2)/corium/env; do
    set id=""
    if load_env -f "$file" id; then
      if [ "$id" = "$installation" ]; then
        if save_env -f "$file" try tried; then true; else
          echo "corium: the boot environment can't be written, so slot $trial is not tried"
          set slot="$chosen"
        fi
      fi
    fi
  done
else
  set slot="$chosen"
fi

set rescue=""

# load_slot LETTER: kernel, initramfs and arguments of that slot; fails when any of them can't be read.
function load_slot {
  if [ "$1" = "B" ]; then set boot_number=4 ; set root_number=6; else set boot_number=3 ; set root_number=5; fi
  set roothash="" ; set hashoffset="" ; set args=""
  load_env -f ($disk,gpt$boot_number)/slot.env roothash hashoffset args
  if [ -z "$roothash" ]; then
    echo "corium: slot $1 can't be read"
    false
  else
    probe --set=part_esp --part-uuid ($disk,gpt2)
    probe --set=part_boot --part-uuid ($disk,gpt$boot_number)
    probe --set=part_root --part-uuid ($disk,gpt$root_number)
    probe --set=part_state --part-uuid ($disk,gpt7)
    probe --set=part_data --part-uuid ($disk,gpt8)
    if regexp 'console=' "$args"; then set consoles=""; fi
    if linux ($disk,gpt$boot_number)/vmlinuz ${fixedKernelArgs()} $consoles corium.mode=disk corium.slot=$1 corium.installation=$installation corium.roothash=$roothash corium.hashoffset=$hashoffset corium.part.esp=$part_esp corium.part.boot=$part_boot corium.part.root=$part_root corium.part.state=$part_state corium.part.data=$part_data $args $rescue; then
      initrd ($disk,gpt$boot_number)/initrd
    else
      false
    fi
  fi
}

# start LETTER OTHER: the other slot stands in when this one can't be loaded. A kernel that was loaded but would
# not start leaves the firmware unable to load a second one (seen with OVMF): then by way of a restart.
function start {
  if load_slot $1; then
    boot
    echo "corium: slot $1 did not start"
    if [ "$1" = "$chosen" -a "$state_other" = "good" ]; then
      set good="$2"
      save_env -f ($disk,gpt2)/corium/env good
    fi
    sleep 5
    reboot
  fi
  if load_slot $2; then boot; fi
  echo "corium: neither slot could be started, restarting in 30 seconds"
  sleep 30
  reboot
}

if [ "$slot" = "B" ]; then
  set other="A" ; set state_other="$state_A"
else
  set other="B" ; set state_other="$state_B"
fi

menuentry "Corium (slot $slot)" --unrestricted {
  start $slot $other
}
if [ "$state_other" = "good" ]; then
  menuentry "Corium (slot $other, this once)" --unrestricted {
    start $other $slot
  }
fi
menuentry "Corium rescue menu (slot $slot)" --unrestricted {
  set rescue="${RESCUE_ARGS}"
  start $slot $other
}
`;
}

export interface MediumImage {
  readonly version: string;
  readonly rootHash: string;
  readonly hashOffsetBytes: number;
}

/** `/boot/grub/grub.cfg` on the ISO. */
export function mediumGrubConfig(image: MediumImage): string {
  return `# Corium ${image.version}: boot loader of the medium.
${PROLOGUE}set timeout=3
set default=live
set medium="$root"

# On the medium one may lay: /corium/config.yaml (the document) and /corium/args with a line such as
#   args="hostname=n1 console=ttyS1,115200"
set args=""
if [ -f ($medium)/corium/args ]; then
  source ($medium)/corium/args
fi
if [ -f ($medium)/corium/config.yaml ]; then
  if regexp 'corium\\.config=' "$args"; then true; else
    set args="$args corium.config=medium:/corium/config.yaml"
  fi
fi
if regexp 'console=' "$args"; then set consoles=""; fi

# A disk that holds an installed Corium is booted rather than installed again. Power lost at the end of an installation
# may leave an empty environment: that one is gone on with.
set installed=""
for file in (hd*,gpt2)/corium/env; do
  if [ -f "$file" -a -z "$installed" ]; then
    set id=""
    if load_env -f "$file" id; then
      if [ -n "$id" ]; then
        if regexp --set=1:installed '^\\((hd[0-9]+,gpt2)\\)' "$file"; then set default=installed; fi
      fi
    fi
  fi
done

function start_live {
  linux ($medium)/corium/vmlinuz ${fixedKernelArgs()} $consoles corium.mode=live corium.roothash=${image.rootHash} corium.hashoffset=${image.hashOffsetBytes} $args $rescue
  if [ -f ($medium)/corium/baked.img ]; then
    initrd ($medium)/corium/initrd ($medium)/corium/baked.img
  else
    initrd ($medium)/corium/initrd
  fi
  boot
}

set rescue=""
menuentry "Corium ${image.version} live system: install, look" --id live --unrestricted {
  start_live
}
if [ -n "$installed" ]; then
  menuentry "Corium on disk ($installed)" --id installed --unrestricted {
    set root="$installed"
    configfile ($installed)/EFI/debian/grub.cfg
  }
fi
menuentry "Corium ${image.version} rescue menu: for what is installed on disks" --id rescue --unrestricted {
  set rescue="${RESCUE_ARGS}"
  start_live
}
`;
}

/** Built into the BIOS core image of an installed disk: \`\$root\` is the disk that the BIOS started. */
export const installedCorePrefix = "(,gpt2)/EFI/debian";

/** The first commands on the medium, before a configuration is found. */
export function mediumEarlyConfig(rootHash: string): string {
  return `search --no-floppy --set=root --file /corium/id/${rootHash.slice(0, 32)}
set prefix=($root)/boot/grub
configfile ($root)/boot/grub/grub.cfg
`;
}

/** `boot.ipxe`: relative to its own address; each fetch is retried for ever and names what failed. */
export function ipxeScript(
  image: MediumImage & { readonly sha256: string; readonly isBaked: boolean; readonly args: string },
): string {
  const initrds = image.isBaked ? "initrd=initrd-net initrd=baked.img" : "initrd=initrd-net";
  return `#!ipxe
# Corium ${image.version}. Needs: vmlinuz, initrd-net, initrd and root.squashfs beside this file; root.squashfs is checked by its hash.
# Before chaining one may set \`args\`, more kernel arguments (set args corium.config=https://… hostname=n1), and
# \`base\`, the address of the folder of root.squashfs with a slash at its end.
isset \${net0/ip} || dhcp
isset \${base} || set base \${cwduri}
${image.args === "" ? "" : `isset \${args} || set args ${image.args}\n`}:again
imgfree
echo Corium ${image.version}: loading from \${cwduri}
kernel vmlinuz ${initrds} ${fixedKernelArgs()} ${DEFAULT_CONSOLES} corium.mode=live corium.roothash=${image.rootHash} corium.hashoffset=${image.hashOffsetBytes} corium.root=\${base}root.squashfs corium.sha256=${image.sha256} BOOTIF=01-\${netX/mac:hexhyp} \${args} || goto failed
initrd initrd-net || goto failed
${image.isBaked ? "initrd baked.img || goto failed\n" : ""}boot || goto failed
:failed
echo Corium could not be loaded from \${cwduri}: \${errno}; trying again in 5 seconds
echo (2d0c613b with https:// means that this iPXE does not know the server's certificate: use http://, the files are checked by hash)
sleep 5
goto again
`;
}
