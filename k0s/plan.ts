import type { Document } from "../config/document.ts";
import { unitOf } from "./argv.ts";
import type { K0sStep } from "./model.ts";
import { K0S_CONFIG, K0S_JOIN_TOKEN, K0S_MANIFESTS, UNIT_FOLDER } from "./paths.ts";
import type { RenderedK0s } from "./render.ts";

/** What is rendered, as the steps that make it so; none while the node has no role. */
export function planK0s(document: Document, rendered: RenderedK0s): readonly K0sStep[] {
  if (rendered.installArgv === null) return [];
  const unit = unitOf(document);
  const steps: K0sStep[] = [];
  const manifests = rendered.files.filter((file) => file.path.startsWith(`${K0S_MANIFESTS}/`));
  if (manifests.length > 0) {
    const title = `write ${manifests.length} manifest ${manifests.length === 1 ? "file" : "files"}`;
    steps.push({ kind: "k0s:manifests", id: "k0s:manifests", title, files: manifests });
  }
  const config = rendered.files.find((file) => file.path === K0S_CONFIG);
  if (config !== undefined) {
    steps.push({ kind: "k0s:config", id: "k0s:config", title: "write and check k0s.yaml", file: config });
  }
  const token = rendered.files.find((file) => file.path === K0S_JOIN_TOKEN);
  if (token !== undefined) {
    steps.push({ kind: "k0s:token", id: "k0s:token", title: "store the join token", file: token, unit });
  }
  const files = rendered.files.filter((file) => file.path.startsWith(`${UNIT_FOLDER}/`));
  const argv = rendered.installArgv;
  const isJoining = token !== undefined;
  steps.push(
    { kind: "k0s:install", id: "k0s:install", title: `install the ${unit} service`, unit, argv, files },
    { kind: "k0s:start", id: "k0s:start", title: `start ${unit}`, unit, isJoining },
    { kind: "k0s:ready", id: "k0s:ready", title: "wait until k0s answers", unit, isJoining },
  );
  return steps;
}
