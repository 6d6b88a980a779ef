/** The tables of what verl has name the tests that show it: each of them is there. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./source.ts";

const own = "packages/reward-loop/test";
/** What a name in the tables may stand below. */
const places: readonly ((name: string) => string)[] = [
  (name) => join(own, name),
  (name) => join(own, "reward-model", name),
  (name) => name.replace(/^registry\//, "packages/reward-manager-registry/test/"),
  (name) => name.replace(/^trainer\//, "packages/trainer/test/"),
  (name) => join("packages", name),
  (name) => name,
];

const page = readFileSync(join(root, "docs/coming-from-verl.md"), "utf8");
const tables = page.slice(page.indexOf("## What verl has"), page.indexOf("### Not here"));
/** They stand in every test. */
const common: ReadonlySet<string> = new Set(["reward", "rewards", "score", "other", "others"]);

const testNames = /`([\w/.-]+\.test\.ts)`/g;

function pathOf(name: string): string | undefined {
  return places.map((at) => join(root, at(name))).find((path) => existsSync(path));
}

test("every test that docs/coming-from-verl.md names is there", () => {
  const named = [...tables.matchAll(testNames)].map((match) => match[1] as string);
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((name) => pathOf(name) === undefined)).toEqual([]);
});

test("every row names a test or a bench, and each of its tests has a word of what it shows", () => {
  const rows = tables
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.endsWith("test |"));
  expect(rows.length).toBeGreaterThan(50);
  const strangers = rows.flatMap((row) => {
    const [tests = "", ...features] = row.split(" | ").toReversed();
    const names = [...tests.matchAll(testNames)].map((match) => match[1] as string);
    if (names.length === 0 && !tests.includes("`bench/")) return [row];
    const words = wordsOf(features.join(" "));
    return names.flatMap((name) => {
      const text = plain(readFileSync(pathOf(name) as string, "utf8"));
      return words.some((word) => text.includes(word)) ? [] : [`${name}: ${row}`];
    });
  });
  expect(strangers).toEqual([]);
});

/** The longer ones: names of verl's and of ours, and what stands around them. */
function wordsOf(text: string): string[] {
  const words = text.split(/\W+/).map(plain);
  return words.filter((word) => word.length > 4 && !common.has(word));
}

/** compute_score and computeScore are the same. */
function plain(text: string): string {
  return text.replaceAll("_", "").toLowerCase();
}
