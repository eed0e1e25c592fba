/**
 * Units and generators that must never act on a node. Storage brings its own (iso/rootfs-storage).
 * A masked unit is a link to /dev/null in /etc/systemd/system of the image, which is read-only below the overlay.
 */
export const MASKED_UNITS = [
  // No login and no shell on any terminal.
  "getty@.service",
  "serial-getty@.service",
  "autovt@.service",
  "console-getty.service",
  "container-getty@.service",
  "getty.target",
  "debug-shell.service",
  "emergency.service",
  "rescue.service",
  "systemd-ask-password-console.path",
  "systemd-ask-password-console.service",
  "systemd-ask-password-wall.path",
  "systemd-ask-password-wall.service",
  "ctrl-alt-del.target",
  // Nobody decided about these.
  "sys-kernel-debug.mount",
  "systemd-firstboot.service",
  "systemd-homed-firstboot.service",
  "systemd-machine-id-commit.service",
  "systemd-hwdb-update.service",
  "ldconfig.service",
  "systemd-update-done.service",
  "systemd-journal-catalog-update.service",
  "systemd-sysusers.service",
  "systemd-remount-fs.service",
  "systemd-hibernate-clear.service",
  "systemd-hibernate.service",
  "systemd-hybrid-sleep.service",
  "systemd-suspend.service",
  "systemd-suspend-then-hibernate.service",
  "sleep.target",
  "suspend.target",
  "hibernate.target",
  "hybrid-sleep.target",
  "mdmonitor.service",
  "keepalived.service",
  "smartmontools.service",
  "smartd.service",
  "apt-daily.timer",
  "apt-daily-upgrade.timer",
  "dpkg-db-backup.timer",
  "motd-news.timer",
] as const;

/** What systemd starts for `rescue` on the command line is the menu, not a shell; emergency.target is a file of ours. */
export const RESCUE_NAMES = ["rescue.target"] as const;

/**
 * Generators act on the command line and on disks before any unit: a debug shell, commands to run, partitions to
 * mount, sshd on vsock. Those that stay: corium-console-generator, and systemd-cryptsetup-generator for the volumes that
 * /etc/crypttab names; that file holds no line but ours, and without one nothing is opened.
 */
export const MASKED_GENERATORS = [
  "systemd-bless-boot-generator",
  "systemd-debug-generator",
  "systemd-fstab-generator",
  "systemd-getty-generator",
  "systemd-gpt-auto-generator",
  "systemd-hibernate-resume-generator",
  "systemd-import-generator",
  "systemd-integritysetup-generator",
  "systemd-rc-local-generator",
  "systemd-run-generator",
  "systemd-ssh-generator",
  "systemd-system-update-generator",
  "systemd-sysv-generator",
  "systemd-tpm2-generator",
  "systemd-veritysetup-generator",
  "lvm2-activation-generator",
] as const;
