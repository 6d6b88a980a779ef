/** The tables of options: the only place that knows defaults, ranges and names; what is made of them on either side says the same. */

import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { readRewardConfig } from "../../src/config/reward-config.ts";
import * as functions from "../../src/options/functions.ts";
import * as policies from "../../src/options/policies.ts";
import { checkOptions, optionAt, withDefaults } from "../../src/options/read.ts";
import { isOtherwise } from "../../src/options/table.ts";
import type { Form, Option, OptionTable } from "../../src/options/table.ts";
import { defaultWords, helpOf, keyOf } from "../../src/options/words.ts";
import { readSettings } from "../../src/settings.ts";
import { refusal } from "../config/refusal.ts";

const packages = fileURLToPath(new URL("../../../", import.meta.url));
const read = (path: string): string => readFileSync(`${packages}${path}`, "utf8");

const tables = Object.entries({ ...policies, ...functions }).flatMap(([name, one]) =>
  typeof one === "object" ? [[name, one as OptionTable] as const] : [],
);
const names = [...new Set(tables.flatMap(([, table]) => Object.keys(table)))];

/** All code but the tables, and what they are read by. */
const code = globSync("{reward-loop,rayling}/src/**/*.ts", { cwd: packages })
  .filter((path) => !path.startsWith("reward-loop/src/options/"))
  .map((path) => ({ path, text: read(path) }));

describe("an entry", () => {
  test.each(["policies", "functions"])(
    "of %s has a comment, for editors, that says what its help and its default say (vitest -u writes it)",
    async (file) => {
      const path = `${packages}reward-loop/src/options/${file}.ts`;
      await expect(withComments(readFileSync(path, "utf8"))).toMatchFileSnapshot(path);
    },
  );

  test("has help, which ends as sentences do, and names options that there are", () => {
    for (const [where, table] of tables) {
      for (const [name, one] of Object.entries(table)) {
        expect(one.help, `${where}.${name}`).toMatch(/^[A-Z].*\.$/);
        const said: string[] = [...(one.needs?.names ?? []), one.atLeast ?? name];
        helpOf(one, (other) => `${said.push(other)}`);
        defaultWords(one, (other) => `${said.push(other)}`);
        expect(names, `${where}.${name}`).toEqual(expect.arrayContaining(said));
      }
    }
  });

  test("is the default of what a loop is settled on", () => {
    const { policy, pipeline, isolation, ...settings } = readSettings({});
    const settled = { ...settings, ...pipeline, ...policy, executorIsolation: isolation };
    const defaults = withDefaults(functions.functionOptions, {});
    // The endpoint's limits, what may be spent and what becomes of failures are settled on elsewhere; nothing is asked of a service.
    const { limits, spend, onFailure, sandboxFusion, rewardModel, ...others } = defaults;
    expect({ limits, spend, sandboxFusion, rewardModel }).toEqual({});
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
      // Options of their own: of requests, of the router and of servers that are started, and of a pause.
      "reward-loop/src/client/post-request.ts",
      "reward-loop/src/client/post-json.ts",
      "reward-loop/src/client/chat-complete.ts",
      "reward-loop/src/reward-model/reward-model-manager.ts",
      "reward-loop/src/reward-model/server-process.ts",
      "reward-loop/src/reward-model/router.ts",
      "reward-loop/src/reward-model/router-options.ts",
      // What is printed of a state.
      "reward-loop/src/manager/reward-loop-manager.ts",
      "rayling/src/cli/score-report.ts",
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
      /reward-model\/|client\/|config\/|options?\.ts|outcome|record\/|tokenizer\/|rayling\//;
    const declared = code
      .filter(({ path }) => !others.test(path))
      .flatMap(({ path, text }) =>
        names.filter((name) => text.includes(`readonly ${name}?:`)).map((name) => [path, name]),
      );
    // What functions that turn one manager into another read of options, and interfaces that say more of a type.
    const more = ["rate-limited.ts", "remote.ts", "sandbox-fusion.ts", "compose/loop-options.ts"];
    expect(declared.filter(([path = ""]) => !more.some((one) => path.endsWith(one)))).toEqual([]);
    const unread = names.filter(
      (name) => !code.some(({ text }) => new RegExp(`\\b${name}\\b`).test(text)),
    );
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
      expect(seen).toContain("reward-loop/src/options/policies.ts");
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

/** The text of a file of tables, with the comments that its entries ought to have. */
function withComments(text: string): string {
  const lines: string[] = [];
  let table: OptionTable = {};
  for (const line of text.split("\n")) {
    const [, opened] = /^export const (\w+) = \{$/.exec(line) ?? [];
    table = tables.find(([name]) => name === opened)?.[1] ?? table;
    const [, name = ""] = /^ {2}(\w+): option\(/.exec(line) ?? [];
    const one = name === "" ? undefined : optionAt(table, name);
    if (one !== undefined) {
      if (/^ {2}\/\*\* .* \*\/$/.test(lines.at(-1) ?? "")) lines.pop();
      const quoted = (other: string): string => `\`${other}\``;
      const words = defaultWords(one, quoted);
      const said = words === undefined ? "" : ` Default: ${words}.`;
      lines.push(`  /** ${helpOf(one, quoted)}${said} */`);
    }
    lines.push(line);
  }
  return lines.join("\n");
}
