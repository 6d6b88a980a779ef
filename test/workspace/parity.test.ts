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

test("every test that packages/reward-loop/README.md names is there", () => {
  const readme = readFileSync(join(root, "packages/reward-loop/README.md"), "utf8");
  const tables = readme.slice(readme.indexOf("## What verl has"), readme.indexOf("### Not here"));
  const named = [...tables.matchAll(/`([\w/.-]+\.test\.ts)`/g)].map((match) => match[1] as string);
  expect(named.length).toBeGreaterThan(50);
  const missing = named.filter((name) => !places.some((at) => existsSync(join(root, at(name)))));
  expect(missing).toEqual([]);
});
