import { describe } from "bun:test";
import { ruleCases } from "../../test/support/rule-cases.ts";

describe("join", () =>
  ruleCases([
    ["a worker without a token", "role: worker\n", "missing join.token"],
    ["join: {} is none", "role: worker\njoin: {}\n", "missing join.token"],
    ["a worker with a source", "role: worker\njoin: {tokenFrom: {file: /t, waitFor: 1m30s}}\n"],
    ["a single node joins nothing", "role: single\njoin: {tokenFrom: {file: /t}}\n", "role join"],
    [
      "token and source: the later one",
      "role: worker\njoin: {tokenFrom: {file: /t}, token: abc}\n",
      "conflict join.token",
      "value join.token",
    ],
    ["what is no token", "role: worker\njoin: {token: abc}\n", "value join.token"],
    [
      "url and file: the later one",
      "role: worker\njoin: {tokenFrom: {file: /t, url: 'https://s.example/t'}}\n",
      "conflict join.tokenFrom.url",
    ],
    ["neither url nor file", "role: worker\njoin: {tokenFrom: {waitFor: 5m}}\n", "missing join.tokenFrom.url"],
    [
      "authFile with a file",
      "role: worker\njoin: {tokenFrom: {file: /t, authFile: /a}}\n",
      "conflict join.tokenFrom.authFile",
    ],
    ["plain http", "role: worker\njoin: {tokenFrom: {url: 'http://s.example/t'}}\n", "value join.tokenFrom.url"],
    ...["0s", "61m", "2h"].map(
      (wait) =>
        [
          `waiting ${wait}`,
          `role: worker\njoin: {tokenFrom: {file: /t, waitFor: ${wait}}}\n`,
          "value join.tokenFrom.waitFor",
        ] as const,
    ),
  ]));
