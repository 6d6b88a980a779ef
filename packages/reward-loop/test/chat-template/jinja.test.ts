import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ChatTemplate } from "../../src/chat-template/chat-template.ts";
import { ChatTemplateError } from "../../src/chat-template/error.ts";

type Values = Readonly<Record<string, unknown>>;

interface Case {
  readonly template: string;
  readonly values?: Values;
  /** The text that transformers renders; else it fails. */
  readonly text?: string;
}

/** Made by make.py beside it. */
const golden = JSON.parse(readFileSync(new URL("jinja.json", import.meta.url), "utf8")) as {
  readonly now: string;
  readonly values: Values;
  readonly cases: readonly Case[];
};

/** Python prints an address, draws lots, loads files, or has what no chat template needs. */
const refused = [
  "{{ config.items }}",
  "{{ words|map('upper') }}",
  "{{ lipsum }}",
  "{{ (1).real }}",
  "{{ 'a'.join }}",
  "{{ '%c' % 'a' }}",
  "{{ 'x'|wordwrap }}",
  "{{ 'x'.encode() }}",
  "{{ words|random }}",
  "{% for i in [1, 2] %}{{ loop }}{% endfor %}",
  "{% include 'x' %}",
  "{% block b %}x{% endblock %}",
  "{% autoescape true %}{{ '<' }}{% endautoescape %}",
  "{{ self }}",
  "{{ x.items }}{{ x['keys'] }}",
  "{% for k, v in x|items %}{{ k }}{{ v }}{% endfor %}",
];

function render(template: string, values: Values = golden.values): string {
  return new ChatTemplate(template).render(values, { now: () => new Date(golden.now) });
}

function errorOf(work: () => unknown): ChatTemplateError {
  try {
    work();
  } catch (error) {
    if (error instanceof ChatTemplateError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

describe("a template is rendered as by transformers", () => {
  test.each([
    ["{{ '<a>'|safe + '<b>' }}", "<a>&lt;b&gt;"],
    ["{{ '<a>' + '<b>'|safe }}", "&lt;a&gt;<b>"],
    ["{{ '<a>'|safe + '&'|safe }}", "<a>&"],
    ["{{ ('<a>'|safe + '\"') is escaped }}", "True"],
    ["{{ 'it\\'s' + ('<'|e) + '>' }}", "it&#39;s&lt;&gt;"],
  ])("texts that are marked safe are put together: %s", (template, text) => {
    expect(render(template)).toBe(text);
  });

  test("nothing but texts is put together with one that is marked safe", () => {
    expect(() => render("{{ 'a'|safe + 1 }}")).toThrow(ChatTemplateError);
  });

  test("there are cases of all kinds", () => {
    expect(golden.cases.length).toBeGreaterThan(400);
    expect(golden.cases.filter(({ text }) => text === undefined).length).toBeGreaterThan(50);
  });

  test.each(golden.cases)("$template", ({ template, values, text }) => {
    if (refused.includes(template)) {
      const error = errorOf(() => render(template, values));
      expect([error.code, error.line]).toEqual(["CHAT_TEMPLATE_UNSUPPORTED", expect.any(Number)]);
      expect(error.feature).not.toBe(undefined);
    } else if (text === undefined) {
      const { code } = errorOf(() => render(template, values));
      expect(code).not.toBe("CHAT_TEMPLATE_UNSUPPORTED");
    } else {
      expect(render(template, values)).toBe(text);
    }
  });
});

describe("what is wrong is named", () => {
  test.each([
    ["a\n{% if %}", "CHAT_TEMPLATE_SYNTAX", 2, "expected an expression"],
    ["\n\n{{ raise_exception('no ' ~ 1) }}", "CHAT_TEMPLATE_REFUSED", 3, "no 1"],
    ["{% for m in messages %}\n{{ m.role.x.y }}{% endfor %}", "CHAT_TEMPLATE_FAILED", 2, "x"],
    ["\n{{ 'a'|wordwrap }}", "CHAT_TEMPLATE_UNSUPPORTED", 2, "the filter wordwrap"],
    ["{% import 'x' as y %}", "CHAT_TEMPLATE_UNSUPPORTED", 1, "the tag import"],
    ["{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "CHAT_TEMPLATE_FAILED", 1, "calls itself"],
    ["{{ 'x' * 100000000 }}", "CHAT_TEMPLATE_UNSUPPORTED", 1, "a value of 100000000"],
    ["{{ 10 ** 1000000 }}", "CHAT_TEMPLATE_UNSUPPORTED", 1, "an int of that size"],
  ])("%j", (template, code, line, reason) => {
    const error = errorOf(() => render(template));
    expect([error.code, error.line]).toEqual([code, line]);
    expect(error.message).toContain(reason);
  });
});

describe("values of JavaScript", () => {
  const numbers = new Map([
    ["2", "b"],
    ["1", "a"],
  ]);

  test("an object whose keys look like numbers has lost their order: a Map has not", () => {
    const lost = Object.fromEntries(numbers);
    expect(render("{{ x['2'] }}{{ x == x }}{{ x|length }}", { x: lost })).toBe("bTrue2");
    for (const template of ["{{ x }}", "{{ x|tojson }}", "{% for k in x %}{{ k }}{% endfor %}"]) {
      expect(errorOf(() => render(template, { x: lost })).code).toBe("CHAT_TEMPLATE_UNSUPPORTED");
    }
    expect(render("{{ x|tojson }}", { x: numbers })).toBe('{"2": "b", "1": "a"}');
  });

  test("an image can be asked for, and not printed", () => {
    const values = { part: { type: "image", image: new Uint8Array(3) } };
    expect(render("{{ 'image' in part }}{{ part.image is defined }}", values)).toBe("TrueTrue");
    const { message } = errorOf(() => render("{{ part }}", values));
    expect(message).toContain("Uint8Array");
  });

  test("a number that may be an int or a float is refused with its place", () => {
    const { message } = errorOf(() => render("", { messages: [{ n: 2 ** 60 }] }));
    expect(message).toContain("messages[0].n");
    expect(render("{{ n }}", { n: 2n ** 60n })).toBe("1152921504606846976");
  });

  test("what is undefined is not there, null is None", () => {
    const values = { x: { a: undefined, b: null }, y: undefined };
    expect(render("{{ 'a' in x }}{{ x.b }}{{ y is defined }}", values)).toBe("FalseNoneFalse");
  });
});
