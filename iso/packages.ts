/** What Debian contributes. docs/adr/0201-image-contents.md says what each part costs and what is left for later. */

export const SUITE = "trixie";
export const COMPONENTS = ["main", "non-free-firmware"] as const;

/** In the running system. */
export const IMAGE_PACKAGES = [
  "linux-image-amd64",
  "systemd",
  "systemd-sysv",
  "systemd-resolved",
  "systemd-timesyncd",
  "udev",
  "dbus",
  "kmod",
  "mount",
  "fdisk",
  "mdadm",
  "lvm2",
  "cryptsetup-bin",
  // Opens volumes at boot and binds them to the TPM; it loads the libraries below when it needs them, so nothing depends on them.
  "systemd-cryptsetup",
  "libtss2-esys-3.0.2-0t64",
  "libtss2-mu-4.0.1-0t64",
  "libtss2-rc0t64",
  "libtss2-tcti-device0t64",
  "dmsetup",
  "e2fsprogs",
  "xfsprogs",
  "dosfstools",
  "wireguard-tools",
  "nftables",
  "iproute2",
  "iputils-arping",
  "iputils-ping",
  "ethtool",
  "smartmontools",
  "ca-certificates",
  "tzdata",
  "zstd",
  "libstdc++6",
  "firmware-realtek",
  "firmware-bnx2",
  "firmware-bnx2x",
] as const;

/** Needed to make the image, not in it: boot loaders and the tools that build the initramfs. */
export const BUILD_PACKAGES = [
  "initramfs-tools",
  "busybox",
  "grub-common",
  "grub-pc-bin",
  "grub-efi-amd64-signed",
  "shim-signed",
] as const;

/** The stand-in for k0s runs the real keepalived, which k0s brings along by itself. */
export const STAND_IN_PACKAGES = ["keepalived"] as const;

/** Never unpacked at all: dpkg's path-exclude. The licences stay. */
export const EXCLUDED_PATHS = [
  "/usr/share/doc/*",
  "/usr/share/man/*",
  "/usr/share/info/*",
  "/usr/share/locale/*",
] as const;

/** Debian's keepalived can't start without: its SNMP part is linked to it. */
export const PRUNED_WITHOUT_KEEPALIVED = ["usr/lib/x86_64-linux-gnu/libperl*"] as const;

/** Removed before the squashfs is made; globs below the root. */
export const PRUNED = [
  // Kernel and initramfs lie on the boot partition.
  "boot/*",
  "vmlinuz*",
  "initrd.img*",
  // No package manager at run time.
  "usr/bin/apt*",
  "usr/bin/dpkg*",
  "usr/sbin/dpkg*",
  "usr/lib/apt",
  "usr/lib/dpkg",
  "usr/share/dpkg",
  "usr/share/debconf",
  "usr/sbin/dpkg-*",
  "usr/lib/systemd/system/apt-*",
  "usr/lib/systemd/system/dpkg-*",
  "usr/lib/x86_64-linux-gnu/libapt-*",
  "etc/apt",
  "etc/cron.*",
  "etc/kernel",
  "etc/initramfs-tools",
  "etc/grub.d",
  "etc/default/grub*",
  "etc/init.d",
  "etc/rc*.d",
  // Interpreters that only maintainer scripts and tools we do not use need.
  "usr/bin/perl*",
  "usr/share/perl*",
  "usr/lib/x86_64-linux-gnu/perl*",
  "usr/bin/python*",
  "usr/lib/python3*",
  "usr/share/python3",
  "usr/sbin/adduser",
  "usr/sbin/addgroup",
  "usr/sbin/deluser",
  "usr/sbin/delgroup",
  "usr/lib/x86_64-linux-gnu/libpython3*",
  // Unicode tables of xfs_scrub alone: 37 MB.
  "usr/lib/x86_64-linux-gnu/libicu*",
  "usr/sbin/xfs_scrub*",
  "usr/lib/systemd/system/xfs_scrub*",
  // Boot loaders and the tools that built the initramfs.
  "usr/lib/grub*",
  "usr/lib/shim",
  "usr/sbin/grub*",
  "usr/bin/grub*",
  "usr/share/grub",
  "usr/share/initramfs-tools",
  "usr/lib/initramfs-tools",
  "usr/lib/dracut",
  "usr/sbin/*initramfs*",
  "usr/lib/klibc*",
  "usr/lib/systemd/system/grub-*",
  // Documentation and build metadata.
  "usr/share/corium-packages",
  "usr/share/bug",
  "usr/share/lintian",
  "usr/share/menu",
  "usr/share/pixmaps",
  "usr/share/gcc",
  "usr/share/gdb",
  "usr/share/bash-completion",
  "usr/share/zsh",
  "usr/share/fish",
  // Firmware of wireless cards.
  "usr/lib/firmware/rtlwifi",
  "usr/lib/firmware/rtl_bt",
  "usr/lib/firmware/RTL8192E",
  "usr/lib/firmware/rtw8*",
  "usr/lib/firmware/rsi*",
  // Seeded by systemd-tmpfiles and /usr/share/corium/var.
  "var/*",
] as const;

/** Kernel modules no server needs; depmod runs afterwards. Globs below kernel/. */
export const PRUNED_MODULES = [
  "sound",
  "drivers/media",
  "drivers/net/wireless",
  "drivers/net/can",
  "drivers/net/wwan",
  "drivers/net/ieee802154",
  "drivers/bluetooth",
  "drivers/gpu/drm/amd",
  "drivers/gpu/drm/radeon",
  "drivers/gpu/drm/nouveau",
  "drivers/gpu/drm/i915",
  "drivers/gpu/drm/xe",
  "drivers/gpu/drm/vmwgfx",
  "drivers/gpu/drm/gma500",
  "drivers/isdn",
  "drivers/nfc",
  "drivers/iio",
  "drivers/staging",
  "drivers/comedi",
  "drivers/input/joystick",
  "drivers/input/tablet",
  "drivers/input/touchscreen",
  "drivers/accel",
  "net/bluetooth",
  "net/mac80211",
  "net/wireless",
  "net/nfc",
  "net/can",
  "net/ieee802154",
  "net/mac802154",
] as const;

/** What the node writes below /var before anything runs; `C` and `d` lines of tmpfiles.d add the rest. */
export const VAR_FOLDERS = [
  "lib",
  "lib/systemd",
  "cache",
  "log",
  "log/journal",
  "spool",
  "tmp",
  "corium",
  "opt",
  "local",
  "mail",
] as const;
