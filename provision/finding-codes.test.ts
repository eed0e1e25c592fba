import { expect, test } from "bun:test";
import { PLANNING_CODES } from "./finding-codes.ts";

test("every code that planning can give is in the catalogue", async () => {
  const root = `${import.meta.dir}/..`;
  const pattern = /(?:code: |\b(?:error|warning|refusal|refuse|incomplete)\(\s*)"([a-z][a-z0-9-]+)"/g;
  const given = new Set<string>();
  for (const folder of ["provision", "provision/install", "provision/mirror", "disks", "raid", "wireguard", "k0s"]) {
    for await (const file of new Bun.Glob("{*plan,*lint,storage*,request}.ts").scan({ cwd: `${root}/${folder}` })) {
      const text = await Bun.file(`${root}/${folder}/${file}`).text();
      for (const [, code] of text.matchAll(pattern)) if (code !== undefined) given.add(code);
    }
  }
  expect(given.size).toBeGreaterThan(25);
  expect([...given].filter((code) => !Object.hasOwn(PLANNING_CODES, code))).toEqual([]);
});
