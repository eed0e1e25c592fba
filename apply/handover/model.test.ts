import { describe, expect, test } from "bun:test";
import { parseObject } from "../../k0s/objects/parse.ts";
import { judgeApplication } from "./model.ts";

const ref = { resource: "applications.argoproj.io", namespace: "argocd", name: "cni" };
const answer = (more: { exitCode?: number | null; stdout?: string; stderr?: string; timedOut?: boolean }) =>
  judgeApplication(ref, parseObject(ref, { exitCode: 1, stdout: "", stderr: "", timedOut: false, ...more }));
const application = (
  sync: string,
  health: string,
  more: object = {},
  spec: object = { syncPolicy: { automated: {} } },
) =>
  answer({
    exitCode: 0,
    stdout: JSON.stringify({
      metadata: { name: "cni" },
      spec,
      status: { sync: { status: sync }, health: { status: health } },
      ...more,
    }),
  });

describe("how the Application stands", () => {
  test.each([
    ["Synced and Healthy", application("Synced", "Healthy"), "True", "Synced"],
    ["synced by hand and Healthy", application("Synced", "Healthy", {}, {}), "True", "Synced"],
    ["on its way", application("OutOfSync", "Missing"), "False", "NotSynced"],
    [
      "not looked at yet",
      answer({ exitCode: 0, stdout: '{"metadata":{"name":"cni"},"spec":{"syncPolicy":{"automated":{}}}}' }),
      "False",
      "NotSynced",
    ],
    ["Synced, its pods not there yet", application("Synced", "Progressing"), "False", "NotHealthy"],
    [
      "going away",
      application("Synced", "Healthy", { metadata: { name: "cni", deletionTimestamp: "x" } }),
      "False",
      "NotSynced",
    ],
    ["without automated sync", application("OutOfSync", "Missing", {}, {}), "False", "WillNeverSync"],
    [
      "with automated sync switched off",
      application("OutOfSync", "Missing", {}, { syncPolicy: { automated: { enabled: false } } }),
      "False",
      "WillNeverSync",
    ],
    [
      "being synced by hand",
      application("OutOfSync", "Missing", { operation: { sync: {} } }, {}),
      "False",
      "NotSynced",
    ],
  ] as const)("%s", (_, standing, status, reason) => {
    expect(standing).toMatchObject({ status, reason });
  });

  test("that will never be Synced says why, and how it can be", () => {
    const { message } = application("OutOfSync", "Missing", {}, {});
    expect(message).toBe(
      "Application argocd/cni is OutOfSync and has no automated sync, so it stays so: set its spec.syncPolicy.automated, or sync it by hand (argocd app sync cni)",
    );
  });
});

describe("no Application", () => {
  test.each([
    ["it is not found", 'Error from server (NotFound): applications.argoproj.io "cni" not found\n'],
    ["Argo CD is not installed", `error: the server doesn't have a resource type "applications"\n`],
    [
      "and another API of the cluster is down",
      `E1201 01:02:03 memcache.go:287] couldn't get resource list for metrics.k8s.io/v1beta1\nError from server (NotFound): applications.argoproj.io "cni" not found\n`,
    ],
  ])("is waited for, and no error: %s", (_, stderr) => {
    expect(answer({ stderr })).toMatchObject({ status: "False", reason: "WaitingForArgoCD" });
  });

  test.each([
    ["nobody answers", { stderr: "The connection to the server localhost:6443 was refused\n" }],
    ["it takes too long", { exitCode: null, timedOut: true }],
    ["what it prints is no JSON", { exitCode: 0, stdout: "?" }],
    ["another object is not found", { stderr: 'Error from server (NotFound): namespaces "argocd" not found\n' }],
  ])("is not known where %s", (_, result) => {
    expect(answer(result).reason).toBe("NoAnswer");
  });
});
