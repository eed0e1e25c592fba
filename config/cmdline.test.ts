import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { argumentValue, parseCmdline, unknownArguments } from "./cmdline.ts";

/** For what hangs; no measure of a loaded machine, which is many times slower. */
setDefaultTimeout(120_000);

const value = (text: string, name = "corium.config"): string | undefined => argumentValue(parseCmdline(text), name);

describe("kernel command line", () => {
  test("the last one wins", () => {
    expect(value("quiet corium.config=/a corium.config=/b ro")).toBe("/b");
  });

  test("quotes around the value and around the argument are honoured", () => {
    expect(value('x corium.config="/with space.yaml" y')).toBe("/with space.yaml");
    expect(value('"corium.config=/with space.yaml" y')).toBe("/with space.yaml");
  });

  test("what follows -- is for init", () => {
    expect(value("corium.config=/a -- corium.config=/b")).toBe("/a");
  });

  test("a value may hold an equals sign; an empty value is empty", () => {
    expect(value("corium.config=https://h/x?a=b")).toBe("https://h/x?a=b");
    expect(value("corium.config=")).toBe("");
    expect(value("corium.config")).toBeUndefined();
  });

  test("B124: brackets, quotes and the marks of a query in an address stay as they are; a name in capitals is told", () => {
    for (const url of ["http://10.10.10.1:8000/a", "https://[fd00::1]:8443/a?b=c&d=e#f", "https://h/a%20b;c,d'e"]) {
      expect(value(`quiet corium.config=${url} ro`)).toBe(url);
      expect(value(`"corium.config=${url}" ro`)).toBe(url);
    }
    const list = parseCmdline("Corium.Config=/a corium.config=[url:http://10.10.10.1/a]");
    expect(argumentValue(list, "corium.config")).toBe("[url:http://10.10.10.1/a]");
    expect(unknownArguments(list)).toEqual(["unknown kernel argument Corium.Config, did you mean corium.config?"]);
  });

  test("unknown corium arguments warn with the nearest known one, others do not", () => {
    const list = parseCmdline(
      "ip=dhcp corium.confg=/a corium.config=/b corium.part.boot=x corium.luks-pcr7=x nomodeset",
    );
    expect(unknownArguments(list)).toEqual(["unknown kernel argument corium.confg, did you mean corium.config?"]);
  });

  test("any text is read without a crash", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const { name } of parseCmdline(text)) expect(typeof name).toBe("string");
      }),
    );
  });
});
