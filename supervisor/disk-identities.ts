/** Which disk stands behind each kernel name. One program, run again only when a disk came or went. */
import { readTree } from "../disks/driver.ts";
import { identityOf, physicalDisks } from "../disks/inventory.ts";
import { parseProperties } from "../disks/parse.ts";
import type { DiskIdentity } from "../kit/disk.ts";
import type { Host } from "../kit/ports.ts";

type Identities = ReadonlyMap<string, DiskIdentity>;
export type ReadIdentities = () => Promise<Identities>;

export function identityReader(host: Host): ReadIdentities {
  let known: { readonly key: string; readonly reading: Promise<Identities | undefined> } | undefined;
  return async () => {
    const key = await diskKey(host);
    // Those who ask at the same time share one look.
    if (known?.key !== key) known = { key, reading: readIdentities(host) };
    const { reading } = known;
    const found = await reading;
    if (found === undefined && known.reading === reading) known = undefined;
    return found ?? new Map();
  };
}

async function readIdentities(host: Host): Promise<Identities | undefined> {
  // A disk that has just come has no serial before udev has looked at it.
  await host.exec({ argv: ["udevadm", "settle", "--timeout=10"], timeoutMs: 20_000 });
  const tree = await readTree(host);
  if (!tree.ok) return undefined;
  const disks = physicalDisks({ tree: tree.value, diskTypes: ["disk"] });
  const found = await Promise.all(
    disks.map(async ({ top, paths: [node = top] }) => {
      // As the record was made: lsblk is silent where udev is not, and the other way round.
      const shown = await host.exec({ argv: ["udevadm", "info", "--query=property", `--name=${node.path}`] });
      const udev = new Map(shown.exitCode === 0 ? [[node.path, parseProperties(shown.stdout)]] : []);
      // Of a disk with several paths the mapping above them is the member.
      return [top.kernelName, identityOf(node, { udev })] as const;
    }),
  );
  return new Map(found);
}

/** Names, and how many disks there have been under them: a name can be handed on. */
async function diskKey(host: Host): Promise<string> {
  const names = await host.files.list("/sys/class/block");
  const disks = (names.ok ? names.value : []).filter((name) =>
    /^(sd[a-z]+|vd[a-z]+|nvme\d+n\d+|mmcblk\d+)$/.test(name),
  );
  const sequences = await Promise.all(disks.map((name) => host.files.readText(`/sys/class/block/${name}/diskseq`)));
  return disks.map((name, at) => `${name}:${sequences[at]?.ok === true ? sequences[at].value.trim() : ""}`).join(" ");
}
