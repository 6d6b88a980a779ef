/** The tables of options: the only place that knows defaults, ranges and names; what is made of them on either side says the same. */

import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { readRewardConfig } from "../../src/config/reward-config.ts";
import * as functions from "../../src/options/defaults/functions.ts";
import * as models from "../../src/options/defaults/reward-model.ts";
import * as policies from "../../src/options/defaults/policies.ts";
import * as timeLimits from "../../src/options/defaults/time-limits.ts";
import { helpOf } from "../../src/options/help.ts";
import { checkOptions, withDefaults } from "../../src/options/read.ts";
import { isOtherwise } from "../../src/options/table.ts";
import type { Form, Option, OptionTable } from "../../src/options/table.ts";
import { defaultWords, keyOf } from "../../src/options/describe-options.ts";
import { readSettings } from "../../src/settings/settings.ts";
import { refusal } from "../config/refusal.ts";

const packages = fileURLToPath(new URL("../../../", import.meta.url));
const read = (path: string): string => readFileSync(`${packages}${path}`, "utf8");

const tables = Object.entries({ ...policies, ...timeLimits, ...functions, ...models }).flatMap(
  ([name, one]) => (typeof one === "object" ? [[name, one as OptionTable] as const] : []),
);
const names = [...new Set(tables.flatMap(([, table]) => Object.keys(table)))];

/** Where the tables stand. */
const files = ["policies", "time-limits", "functions", "reward-model"];
const pathOf = (file: string): string => `${packages}reward-loop/src/options/defaults/${file}.ts`;
const sourceOf = (file: string): string => readFileSync(pathOf(file), "utf8");

/** All code but the tables, and what they are read by. */
const code = globSync("{reward-loop,rayling}/src/**/*.ts", { cwd: packages })
  .filter((path) => !path.startsWith("reward-loop/src/options/"))
  .map((path) => ({ path, text: read(path) }));

describe("an entry", () => {
  test.each(files)(
    "of %s has a comment, which says what it means and its default (vitest -u writes the default)",
    async (file) => {
      const entries = entriesIn(sourceOf(file)).map(({ text }) => text);
      for (const text of entries) expect(text).toMatch(/^[A-Z].*\.$/);
      expect(entries.length).toBeGreaterThan(2);
      await expect(withDefaultsIn(sourceOf(file))).toMatchFileSnapshot(pathOf(file));
    },
  );

  test("has that comment as its help", async () => {
    const texts: Record<string, Record<string, string>> = {};
    for (const { table, name, text } of files.flatMap((file) => entriesIn(sourceOf(file)))) {
      (texts[table] ??= {})[name] = text;
    }
    const head = [
      "/**",
      " * Made of the comments in policies.ts, time-limits.ts, functions.ts and reward-model.ts:",
      " * `vitest run packages/reward-loop/test/options -u`.",
      " */",
    ].join("\n");
    const lines = Object.entries(texts).flatMap(([table, entries]) => [
      `  ${table}: {`,
      ...Object.entries(entries).map(([name, text]) => `    ${name}: ${JSON.stringify(text)},`),
      "  },",
    ]);
    const made = [head, "", "// oxfmt-ignore", "export const helpTexts = {", ...lines, "};", ""];
    await expect(made.join("\n")).toMatchFileSnapshot(
      `${packages}reward-loop/src/options/help-texts.ts`,
    );
    for (const [where, table] of tables) {
      for (const [name, one] of Object.entries(table)) {
        expect(helpOf(one, String), `${where}.${name}`).not.toBe("");
        expect(names).toEqual(
          expect.arrayContaining([...(one.needs?.names ?? []), one.atLeast ?? name]),
        );
      }
    }
  });

  test("is the default of what a loop is settled on", () => {
    const { policy, pipeline, isolation, ...settings } = readSettings({});
    const settled = { ...settings, ...pipeline, ...policy, executorIsolation: isolation };
    const defaults = withDefaults(functions.functionOptions, {});
    // The endpoint's limits, what may be spent and what becomes of failures are settled on elsewhere; nothing is asked of a service.
    const { limits, spend, onFailure, sandboxFusion, rewardModel, ...most } = defaults;
    const { computeScoreKwargs, ...others } = most;
    expect({ limits, spend, sandboxFusion, rewardModel, computeScoreKwargs }).toEqual({});
    expect(settled.defaultScore.lenient).toBe(functions.computeScoreOptions.lenient.standard);
    expect(onFailure).toEqual({ again: false, failAbove: 1 });
    expect(settled).toMatchObject(others);
    const limited = { concurrency: "auto", breaker: true } as const;
    const all = readSettings({ retry: true, hedge: true, limits: limited }).policy;
    expect(all.retry).toEqual(plainOf(policies.retryOptions));
    expect(all.hedge).toEqual(plainOf(policies.hedgeOptions));
    expect(all.limits?.settings).toEqual({
      ...plainOf(policies.limiterOptions),
      concurrency: plainOf(policies.adaptiveOptions),
      breaker: plainOf(policies.breakerOptions),
    });
  });

  test("has its default nowhere else", () => {
    const others: readonly string[] = [
      // Options of their own: of requests, and of servers that are started.
      "reward-loop/src/client/post-request.ts",
      "reward-loop/src/client/post-json.ts",
      "reward-loop/src/client/chat-complete.ts",
      "reward-loop/src/reward-model/reward-model-manager.ts",
      "reward-loop/src/reward-model/server-process.ts",
      // The url of a request, and the host of an agent.
      "reward-loop/src/reward-model/router.ts",
      "rayling/src/cli/flag-values.ts",
      // Options of judges, which know no loop.
      "reward-loop/src/judge/rubric.ts",
      "reward-loop/src/judge/structured.ts",
      // Names in a template.
      "reward-loop/src/chat-template/python/format/format-method.ts",
      "reward-loop/src/chat-template/parse/known-names.ts",
      // What is printed of a state.
      "reward-loop/src/manager/reward-loop-manager.ts",
      "rayling/src/cli/score/score-report.ts",
    ];
    const again = new RegExp(
      `[{,(]\\s*(?:\\w+: )?(${names.join("|")}) = (?:[\\d"'\\[]|true|false)`,
    );
    const found = code
      .filter(({ path }) => !others.includes(path))
      .filter(({ text }) => again.test(text));
    expect(found.map(({ path, text }) => [path, again.exec(text)?.[0]])).toEqual([]);
  });

  test("is declared nowhere else, and somebody reads it", () => {
    const others =
      /reward-model\/|client\/|judge\/|config\/|options?\.ts|outcome|record\/|sample\/|tokenizer\/|rayling\//;
    const declared = code
      .filter(({ path }) => !others.test(path))
      .flatMap(({ path, text }) =>
        names.filter((name) => text.includes(`readonly ${name}?:`)).map((name) => [path, name]),
      );
    // What functions that turn one manager into another read of options, and interfaces that say more of a type.
    const more = [
      "rate-limited-manager.ts",
      "remote-manager.ts",
      "sandbox-fusion.ts",
      "compose/plan/loop-options.ts",
    ];
    expect(declared.filter(([path = ""]) => !more.some((one) => path.endsWith(one)))).toEqual([]);
    // The router's endpoint is core's.
    const endpoints = globSync("core/src/transport/http/*.ts", { cwd: packages }).map(read);
    const texts = [...code.map(({ text }) => text), ...endpoints];
    const unread = names.filter((name) => {
      return !texts.some((text) => new RegExp(`\\b${name}\\b`).test(text));
    });
    expect(unread).toEqual([]);
  });
});

describe("a value that may not be", () => {
  const numbers = numbersOf(functions.loopOptions);

  test("there are many of them", () => {
    expect(numbers.length).toBeGreaterThan(25);
  });

  test.each(numbers)("$option is refused by its name of either side", ({ option, key, value }) => {
    expect(
      refusalOf(() => checkOptions(functions.loopOptions, withUrl(treeOf(option, value)))),
    ).toMatchObject({ code: "REWARD_LOOP_OPTION", option, value: String(value) });
    if (key === undefined) return;
    const error = refusal(() => readRewardConfig(treeOf(`reward.${key}`, value)));
    expect(error).toMatchObject({ code: "REWARD_CONFIG", key: `reward.${key}`, value });
  });
});

describe("what loads the tables", () => {
  test.each(["index.ts", "options/index.ts", "worker/reward-loop-worker.ts"])(
    "%s loads no zod with them: that takes longer than all else",
    (entry) => {
      const seen = new Set<string>();
      const visit = (path: string): void => {
        if (seen.has(path)) return;
        seen.add(path);
        const imports = read(path).matchAll(/^(?:import|export) (?!type )[^;]*?from "([^"]+)";/gm);
        for (const [, from = ""] of imports) {
          expect(from, path).not.toMatch(/^zod$|config-tree/);
          if (from.startsWith(".")) {
            visit(new URL(from, `file:///${path}`).pathname.slice(1));
          }
        }
      };
      visit(`reward-loop/src/${entry}`);
      expect(seen).toContain("reward-loop/src/options/defaults/policies.ts");
    },
  );
});

/** Its values, and of sections what is in them. */
function plainOf(table: OptionTable): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(table).map(([name, { standard }]) => [
      name,
      isOtherwise(standard) || standard === false ? undefined : standard,
    ]),
  );
}

interface OutOfRange {
  readonly option: string;
  /** In files, below `reward`; undefined: in none. */
  readonly key: string | undefined;
  readonly value: number;
}

/** Of every option that is a number, and of those in sections. */
function numbersOf(table: OptionTable, at = "", keyAt: string | undefined = ""): OutOfRange[] {
  return Object.entries(table).flatMap(([name, one]) => {
    const option = at + name;
    const own = keyOf(name, one) ?? undefined;
    const key = own === undefined || keyAt === undefined ? undefined : keyAt + own;
    const inside = sectionOf(one);
    if (inside !== undefined) {
      return numbersOf(inside, `${option}.`, key === undefined ? undefined : `${key}.`);
    }
    const value = outOf(one.kind);
    return value === undefined ? [] : [{ option, key, value }];
  });
}

function sectionOf({ kind }: Option): OptionTable | undefined {
  return kind.is === "section" || kind.is === "switch" ? kind.table : undefined;
}

function outOf(kind: Form): number | undefined {
  if (kind.is === "auto") return outOf(kind.of);
  if (kind.is !== "number") return undefined;
  const { least, above, most, below } = kind;
  if (least !== undefined) return least - 1;
  return above ?? below ?? (most === undefined ? undefined : most + 1);
}

function treeOf(path: string, value: unknown): Record<string, unknown> {
  return path
    .split(".")
    .reduceRight<unknown>((inside, name) => ({ [name]: inside }), value) as Record<string, unknown>;
}

/** A service has to have one. */
function withUrl(tree: Record<string, unknown>): Record<string, unknown> {
  const { sandboxFusion } = tree;
  if (sandboxFusion === undefined) return tree;
  return { sandboxFusion: { url: "http://sandbox/run_code", ...sandboxFusion } };
}

function refusalOf(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

interface Entry {
  /** The lines of its comment: first, and behind the last. */
  readonly lines: readonly [from: number, to: number];
  readonly table: string;
  readonly name: string;
  /** Its comment, without the default. */
  readonly text: string;
}

/** Entries of tables, which stand two spaces in, below their comments. */
function entriesIn(source: string): Entry[] {
  const lines = source.split("\n");
  let table = "";
  return lines.flatMap((line, at) => {
    table = /^export const (\w+) = \{$/.exec(line)?.[1] ?? table;
    const [, name] = /^ {2}(\w+): option\(/.exec(line) ?? [];
    if (name === undefined) return [];
    const isCommented = lines[at - 1]?.endsWith("*/") === true;
    const above = lines.slice(0, at).findLastIndex((one) => one.startsWith("  /**"));
    const from = isCommented ? above : at;
    const comment = lines
      .slice(from, at)
      .map((one) => one.replace(/^ *(?:\/\*\*|\*\/|\*) ?/, "").replace(/ ?\*\/$/, ""));
    const text = comment.join(" ").trim();
    return [{ lines: [from, at], table, name, text: text.replace(/ Default: .*\.$/, "") }];
  });
}

function withDefaultsIn(source: string): string {
  const lines = source.split("\n");
  for (const { lines: place, table, name, text } of entriesIn(source).toReversed()) {
    const one = tables.find(([known]) => known === table)?.[1][name] as Option;
    const words = defaultWords(one, () => undefined);
    const whole = words === undefined ? text : `${text} Default: ${words}.`;
    lines.splice(place[0], place[1] - place[0], ...commentOf(whole));
  }
  return lines.join("\n");
}

/** A comment that ends at column 100. */
function commentOf(text: string): string[] {
  const line = `  /** ${text} */`;
  if (line.length <= 100) return [line];
  const wrapped = [""];
  for (const word of text.split(/\s+/)) {
    const longer = `${wrapped.at(-1)} ${word}`.trim();
    if (longer.length > 95) wrapped.push(word);
    else wrapped[wrapped.length - 1] = longer;
  }
  return ["  /**", ...wrapped.map((one) => `   * ${one}`), "   */"];
}
