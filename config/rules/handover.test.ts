import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

const stack = "manifests: [{name: s, files: [{name: a.yaml, content: '{apiVersion: v1, kind: Namespace}'}]}]\n";
const network = (handover: string, cni = "custom"): string =>
  `role: controller\nnetwork: {cni: ${cni}, handover: ${handover}}\n${stack}`;

describe("network.handover", () =>
  ruleCases([
    ["automatic with all it needs", network("{mode: automatic, stack: s, application: {name: a, namespace: b}}")],
    ["manual needs no application", network("{mode: manual, stack: s}")],
    ["disabled needs nothing", network("{mode: disabled}")],
    ["only with a CNI of one's own", network("{mode: disabled}", "calico"), "conflict network.handover"],
    ["manual without stack", network("{mode: manual}"), "missing network.handover.stack"],
    ["automatic without application", network("{mode: automatic, stack: s}"), "missing network.handover.application"],
    ["a stack that is not there", network("{mode: manual, stack: t}"), "reference network.handover.stack"],
    ["no mode", network("{stack: s}"), "missing network.handover.mode"],
  ]));
