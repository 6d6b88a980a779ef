/** The tables of this folder's README and the tests agree. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "../workspace/source.ts";

const readme = readFileSync(join(root, "test/conformance/README.md"), "utf8");
const rows = readme
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| **"))
  .map((line) =>
    line
      .slice(1, -1)
      .split(" | ")
      .map((cell) => cell.trim()),
  );
const cases = rows.filter((cells) => cells.length === 3 && cells[0] !== "Ray's test");
const rules = rows.filter((cells) => cells.length === 2 && cells[0] !== "Rule");
const verdictOf = (cells: readonly string[]): string => cells.at(-1) ?? "";
const holds = (cells: readonly string[]): boolean => /^holds\b/.test(verdictOf(cells));

/** Titles of the tests of this folder. */
const titles = globSync("test/conformance/*.test.ts", { cwd: root })
  .filter((path) => !path.endsWith("table.test.ts"))
  .flatMap((path) =>
    [...readFileSync(join(root, path), "utf8").matchAll(/"(test_\w+(?:::\w+)?): /g)].map(
      (match) => match[1] as string,
    ),
  );

describe("the table of cases", () => {
  test("has a verdict in every row", () => {
    expect(cases.length).toBeGreaterThan(80);
    const verdicts = /^(holds|differs|not meaningful)\b/;
    expect([...cases, ...rules].filter((cells) => !verdicts.test(verdictOf(cells)))).toEqual([]);
  });

  test("says why for all that does not hold", () => {
    const bare = [...cases, ...rules].filter((cells) =>
      /^(differs|not meaningful)$/.test(verdictOf(cells)),
    );
    expect(bare).toEqual([]);
  });

  test("names a case once, and for each that holds there is a test of its name", () => {
    const names = cases.map(([name]) => (name ?? "").replaceAll("`", ""));
    expect(new Set(names).size).toBe(names.length);
    const shown = cases.filter(holds).map(([name]) => (name ?? "").replaceAll("`", ""));
    expect(shown.filter((name) => !titles.includes(name))).toEqual([]);
  });

  test("has a row for every test that is called after one of Ray's", () => {
    const names = new Set(cases.map(([name]) => (name ?? "").replaceAll("`", "")));
    expect(titles.filter((title) => !names.has(title))).toEqual([]);
  });
});

describe("the table of rules", () => {
  test("names, for each that holds, a test that exists", () => {
    expect(rules.length).toBeGreaterThan(100);
    const wrong = rules.filter(holds).filter((cells) => {
      const [, path, title] =
        /^holds: `([\w./-]+)` "((?:[^"\\]|\\.)+)"/.exec(verdictOf(cells)) ?? [];
      if (path === undefined || title === undefined) return true;
      return !readFileSync(join(root, "test", path), "utf8").includes(`"${title}`);
    });
    expect(wrong).toEqual([]);
  });
});
