/** The sources stay as readable as they are: what is counted of them (test/house) keeps to its limits. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { aims, exceptions, isException } from "../house/aims.ts";
import { type Finding, type Measure, measure } from "../house/measure.ts";
import { bannedWords, wordsOf } from "../house/words.ts";
import { root } from "./source.ts";

const findings = measure();

test.each(Object.entries(aims))("%s", (name, { what, most }) => {
  const measured = name as Measure;
  const found: readonly Finding[] = findings[measured].filter(
    (one) => !isException(measured, one.what),
  );
  const worst = found.slice(0, 10).map((one) => `${one.size} ${one.what}: ${one.place}`);
  expect(found.length, `${what}: ${worst.join("; ")}`).toBeLessThanOrEqual(most);
});

test("there are at most ten exceptions, each is needed and has a reason", () => {
  expect(exceptions.length).toBeLessThanOrEqual(10);
  for (const [measured, what, reason] of exceptions) {
    expect(findings[measured].map((one) => one.what)).toContain(what);
    expect(reason).toMatch(/\w+ \w+/);
  }
});

test.each(Object.entries(bannedWords))('no name has the word "%s"', (word, use) => {
  const found = findings["banned words"].filter(({ what }) => what === word);
  expect(
    found.map(({ place }) => place),
    `write ${use}`,
  ).toEqual([]);
});

test("the glossary has at most 60 terms, in order, each once, and none of the banned words", () => {
  const page = readFileSync(join(root, "docs/glossary.md"), "utf8");
  const terms = [...page.matchAll(/^\| ([^|]+) \| [^|]+ \|$/gm)].map((match) => match[1] ?? "");
  expect(terms.shift()).toBe("Term");
  expect(terms.length).toBeLessThanOrEqual(60);
  expect(terms).toEqual([...new Set(terms)].toSorted());
  expect(wordsOf(page).filter((word) => Object.hasOwn(bannedWords, word))).toEqual([]);
});
