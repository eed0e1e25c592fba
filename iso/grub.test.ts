import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BIOS_MODULES, installedGrubConfig, ipxeScript, mediumEarlyConfig, mediumGrubConfig } from "./grub.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const image = { version: "1.2.3", rootHash: "ab".repeat(32), hashOffsetBytes: 163_840 };

const scripts = {
  installed: installedGrubConfig(),
  medium: mediumGrubConfig(image),
  "medium, early": mediumEarlyConfig(image.rootHash),
};

describe("GRUB configuration", () => {
  const checker = Bun.which("grub-script-check");
  for (const [name, text] of Object.entries(scripts)) {
    test.skipIf(checker === null)(`${name}: grub-script-check takes it`, () => {
      const folder = mkdtempSync(join(tmpdir(), "grub-"));
      try {
        writeFileSync(join(folder, "grub.cfg"), text);
        const checked = Bun.spawnSync([checker ?? "", join(folder, "grub.cfg")]);
        expect(checked.stderr.toString()).toBe("");
        expect(checked.exitCode).toBe(0);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });

    test(`${name}: nothing that GRUB script or Debian's signed GRUB does not have`, () => {
      expect(text).not.toMatch(/\$\{[^}]*:-/);
      expect(text).not.toMatch(/^\s*(insmod|eval|read|hashsum)\b/m);
    });
  }

  test("the BIOS core has every command that the scripts call", () => {
    const modules = new Set<string>(BIOS_MODULES);
    const module: Readonly<Record<string, string>> = {
      regexp: "regexp",
      load_env: "loadenv",
      save_env: "loadenv",
      probe: "probe",
      search: "search",
      linux: "linux",
      initrd: "linux",
      serial: "serial",
      terminal_input: "terminal",
      sleep: "sleep",
      reboot: "reboot",
      echo: "echo",
      configfile: "configfile",
      source: "configfile",
      "[ ": "test",
      true: "true",
      false: "true",
    };
    for (const [command, name] of Object.entries(module)) {
      expect(Object.values(scripts).join("\n").includes(command), command).toBe(true);
      expect(modules.has(name), name).toBe(true);
    }
  });

  test("no entry can be edited and none asks for a password", () => {
    for (const text of [scripts.installed, scripts.medium]) {
      expect(text).toContain('set superusers="corium"');
      for (const entry of text.match(/menuentry .*/g) ?? []) expect(entry).toContain("--unrestricted");
    }
  });

  test("the rescue menu has an entry on disk and on the medium, and no other entry starts it", () => {
    for (const text of [scripts.installed, scripts.medium]) {
      const entries = text.split(/^(?=\s*menuentry )/m).slice(1);
      const rescuing = entries.filter((entry) => entry.includes("systemd.unit=corium-rescue.target"));
      expect(rescuing.map((entry) => /"([^"]*)"/.exec(entry)?.[1])).toEqual([expect.stringContaining("rescue menu")]);
      expect(text.slice(0, text.indexOf("menuentry"))).toContain('set rescue=""');
      expect(text).toMatch(/^\s*(?:if )?linux .* \$args \$rescue/m);
    }
    for (const [, unit = ""] of scripts.installed.matchAll(/systemd\.unit=(\S+?)"/g)) {
      expect(existsSync(join(import.meta.dir, "rootfs/usr/lib/systemd/system", unit))).toBe(true);
    }
  });

  test("noise on a serial line does not stop an installed machine at a password prompt", () => {
    expect(scripts.installed).toContain("set timeout_style=hidden");
    expect(scripts.installed.indexOf("timeout_style=hidden")).toBeLessThan(scripts.installed.indexOf("menuentry"));
  });

  test("every kernel is told how to end a panic, and takes nothing from firmware tables", () => {
    for (const text of [
      scripts.installed,
      scripts.medium,
      ipxeScript({ ...image, sha256: "00", isBaked: false, args: "" }),
    ]) {
      expect(text).toContain("panic=10");
      expect(text).toContain("systemd.import_credentials=no");
      expect(text).toContain("raid=noautodetect");
      // Power lost while the last name of the table is written: without it the kernel finds no partition at all.
      expect(text).toMatch(/ gpt /);
    }
  });
});

describe("iPXE script", () => {
  test("B123: one temporary network error does not end the boot: every fetch is tried again, and its address is shown", () => {
    const text = ipxeScript({ ...image, sha256: "cd".repeat(32), isBaked: true, args: "corium.ntp=10.0.0.1" });
    const fetches = text.split("\n").filter((line) => /^(kernel|initrd|boot)\b/.test(line));
    expect(fetches.length).toBe(4);
    for (const line of fetches) expect(line).toEndWith("|| goto failed");
    expect(text).toMatch(/:failed\necho .*\$\{cwduri\}/);
    expect(text).toContain(`corium.sha256=${"cd".repeat(32)}`);
    expect(text).toContain("isset ${args} || set args corium.ntp=10.0.0.1\n");
  });
});
