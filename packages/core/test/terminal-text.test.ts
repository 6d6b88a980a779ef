/** What a terminal would obey does not come to it: by tables, and by all characters that there are. */
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test, vi } from "vitest";
import { LogPrinter } from "../src/runtime/observe/log-printer.ts";
import {
  takesColours,
  terminalJson,
  terminalLine,
  terminalText,
} from "../src/shared/text/terminal-text.ts";
import { warn } from "../src/shared/text/warning.ts";

const esc = "\u001b";

/** C0, DEL, C1, and the controls of bidirectional text and of lines. */
const isObeyed = (code: number): boolean =>
  code < 0x20 ||
  (code >= 0x7f && code <= 0x9f) ||
  [0x61c, 0x200e, 0x200f].includes(code) ||
  (code >= 0x2028 && code <= 0x202e) ||
  (code >= 0x2066 && code <= 0x2069);

const hasObeyed = (text: string): boolean =>
  Array.from(text).some((one) => isObeyed(one.codePointAt(0) ?? 0));

describe("every character", () => {
  const all = Array.from({ length: 0x1_10_00 }, (_, code) => code);

  test("that a terminal obeys is taken out of lines, texts and JSON, and no other is changed", () => {
    for (const code of all) {
      const character = String.fromCodePoint(code);
      const text = `a${character}b`;
      const isKept = !isObeyed(code);
      const inLine = terminalLine(text);
      if (isKept) expect([code, inLine]).toEqual([code, text]);
      else expect([code, ["a b", "a\uFFFDb"].includes(inLine)]).toEqual([code, true]);
      const inText = terminalText(text, { colours: true });
      const isLayout = character === "\n" || character === "\t";
      if (isKept || isLayout) expect([code, inText]).toEqual([code, text]);
      else expect([code, hasObeyed(inText)]).toEqual([code, false]);
      const json = terminalJson(JSON.stringify(text));
      expect(JSON.parse(json)).toBe(text);
      expect(hasObeyed(json)).toBe(false);
    }
  });
});

/** Each does something in a terminal, and stands between two words. */
const attacks: Readonly<Record<string, string>> = {
  "the screen is cleared": `${esc}[2J${esc}[H`,
  "a line above is written over": `${esc}[1A${esc}[2K`,
  "the title is set": `${esc}]0;all is well\u0007`,
  "the title is set, with another end": `${esc}]0;all is well${esc}\\`,
  "the clipboard is written": `${esc}]52;c;cm0gLXJmIC8=\u0007`,
  "a link that lies": `${esc}]8;;http://evil.example${esc}\\`,
  "a device is asked": `${esc}[c${esc}[6n${esc}[>c`,
  "a control string": `${esc}P$q"p${esc}\\`,
  "an application's string": `${esc}_Ga=T,f=100;AAAA${esc}\\`,
  "a privacy message": `${esc}^secret${esc}\\`,
  "the charset is changed": `${esc}(0`,
  "all is reset": `${esc}c`,
  "the screen is scrolled": `${esc}D${esc}M`,
  "CSI of C1": "\u009b2J",
  "OSC of C1": "\u009d0;all is well\u009c",
  "DCS of C1": "\u0090q\u009c",
  "colours with an intermediate": `${esc}[0 m`,
  "a private mode": `${esc}[?1049h${esc}[?25l`,
};

describe.each(Object.entries(attacks))("%s", (_, attack) => {
  test("is gone from a text, with colours and without", () => {
    for (const colours of [true, false]) {
      expect(terminalText(`one ${attack}two\nthree\t4`, { colours })).toBe("one two\nthree\t4");
    }
  });

  test("is seen in a line, and does nothing", () => {
    const line = terminalLine(`one ${attack}two`);
    expect(line).toContain("\uFFFD");
    expect(hasObeyed(line)).toBe(false);
  });
});

describe("a text", () => {
  test.each<[string, string, string]>([
    ["that is cut in a sequence", `one ${esc}[`, "one "],
    ["that is cut in a string", `one ${esc}]0;title`, "one 0;title"],
    ["that ends with an escape", `one ${esc}`, "one \uFFFD"],
    ["whose sequence has another in it", `${esc}]0;${esc}[2Jone\u0007`, "0;one\uFFFD"],
    ["of a progress bar", "10%\r20%\r\r30%\r\n", "10% 20% 30%\n"],
    ["with marks of direction", "user\u202etxt.exe\u202c", "user\uFFFDtxt.exe\uFFFD"],
    ["with other lines", "one\u2028two\u0085three\u000bfour", "one\uFFFDtwo\uFFFDthree\uFFFDfour"],
    ["with letters of all kinds", "naïve 漢字 🙂 👩‍👩‍👧 שלום", "naïve 漢字 🙂 👩‍👩‍👧 שלום"],
  ])("%s", (_, text, shown) => {
    expect(terminalText(text)).toBe(shown);
  });

  test("keeps its colours where they are wanted, until the end of the line", () => {
    const red = `${esc}[1;31mred${esc}[0m and ${esc}[38:2::255:0:0mmore\nplain`;
    expect(terminalText(red)).toBe("red and more\nplain");
    expect(terminalText(red, { colours: true })).toBe(
      `${esc}[1;31mred${esc}[0m and ${esc}[38:2::255:0:0mmore${esc}[0m\nplain`,
    );
    const closed = `${esc}[32mgreen${esc}[0m`;
    expect(terminalText(closed, { colours: true })).toBe(closed);
    // Colours that something else hides behind.
    const hidden = `${esc}[31${esc}[2Jm`;
    expect(terminalText(hidden, { colours: true })).not.toContain(`${esc}[2J`);
  });

  test("loses nothing that Node's own function would keep, but for what a terminal obeys", () => {
    const lines = Object.values(attacks).map((attack) => `${attack}x`);
    for (const line of lines) expect(terminalText(line)).toBe("x");
    expect(stripVTControlCharacters(lines.join("")).length).toBeGreaterThan(lines.length);
  });

  test.each([
    ["escapes", esc],
    ["begins of strings", `${esc}]`],
    ["begins of strings of C1", "\u009d"],
    ["begins of sequences", `${esc}[`],
    ["carriage returns", "\r"],
    ["spaces", " "],
    ["line ends", "\n "],
    ["digits behind a begin", `${esc}[1`],
  ])("of a million %s is read once", (_, part) => {
    const text = `${part.repeat(500_000)}漢x`;
    for (const shown of [terminalText(text), terminalText(text, { colours: true })]) {
      expect(shown.endsWith("漢x")).toBe(true);
    }
    expect(terminalLine(text).endsWith("漢x")).toBe(true);
  });
});

test("a line is one line", () => {
  expect(terminalLine("  one \r\n  two\n\n\nthree\tfour\n")).toBe("  one two three four ");
});

describe("colours", () => {
  test.each<[string, { FORCE_COLOR?: string; NO_COLOR?: string }, boolean | undefined, boolean]>([
    ["are for a terminal", {}, true, true],
    ["are not for a file", {}, undefined, false],
    ["are for who asks for them", { FORCE_COLOR: "1" }, undefined, true],
    ["are not for who asks for none", { FORCE_COLOR: "0" }, true, false],
    ["are not for who wants none", { NO_COLOR: "1" }, true, false],
  ])("%s", (_, env, isTTY, takes) => {
    vi.stubEnv("FORCE_COLOR", env.FORCE_COLOR);
    vi.stubEnv("NO_COLOR", env.NO_COLOR);
    expect(takesColours(isTTY === undefined ? {} : { isTTY })).toBe(takes);
    vi.unstubAllEnvs();
  });
});

describe("what hosts write", () => {
  const shownOf = (line: string, owner: string, takes: boolean): string => {
    let shown = "";
    const raw: string[] = [];
    const logs = new LogPrinter({
      write: (_, text) => void (shown += text),
      onLine: (...all) => void raw.push(all[3]),
      takesColours: () => takes,
    });
    logs.text("host-1", "stdout", owner, `${line}\n`);
    // Who asks for the line later, and is no terminal, gets it as it is.
    expect(raw).toEqual([line]);
    return shown;
  };

  test("is shown without what a terminal obeys; colours where they are wanted", () => {
    const line = `${esc}[2J${esc}[32mgreen${esc}[0m\u202e\rspoof`;
    expect(shownOf(line, "A", true)).toBe(
      `(A host-1) ${esc}[32mgreen${esc}[0m\uFFFD spoof${esc}[0m\n`,
    );
    expect(shownOf(line, "A", false)).toBe("(A host-1) green\uFFFD spoof\n");
  });

  test("is of somebody whose name is one line", () => {
    expect(shownOf("line", `A\n(B host-2) ${esc}[2J`, true)).toBe(
      "(A (B host-2) \uFFFD[2J host-1) line\n",
    );
  });
});

describe("a warning", () => {
  const emitted = (warning: string | Error): Error | string => {
    const spy = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    warn(warning);
    const [first] = spy.mock.calls[0] ?? [];
    spy.mockRestore();
    return first as Error | string;
  };

  test("has nothing that a terminal obeys, and keeps its lines", () => {
    expect(emitted(`one ${esc}[2J\ntwo\u202e`)).toBe("one \ntwo\uFFFD");
  });

  test("that is an error keeps its class and its fields", () => {
    const error = Object.assign(new TypeError(`one${esc}[2J`), { code: "MINE" });
    const told = emitted(error);
    expect(told).toBeInstanceOf(TypeError);
    expect(told).toMatchObject({ message: "one", code: "MINE", name: "TypeError" });
    expect((told as Error).stack).not.toContain(esc);
    expect(String(told)).toBe("TypeError: one");
    expect(error.message).toContain(esc);
    const plain = new Error("plain");
    expect(emitted(plain)).toBe(plain);
  });
});
