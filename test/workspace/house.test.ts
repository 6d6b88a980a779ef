/** The sources do not get harder to read: what is counted of them (test/house) only goes down. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { aims } from "../house/aims.ts";
import { type Finding, type Measure, measure } from "../house/measure.ts";
import { bannedWords, wordsOf } from "../house/words.ts";
import { root } from "./source.ts";

const findings = measure();

test.each(Object.entries(aims))("%s", (name, { what, most }) => {
  const found: readonly Finding[] = findings[name as Measure];
  const worst = found.slice(0, 10).map((one) => `${one.size} ${one.what}: ${one.place}`);
  expect(found.length, `${what}: ${worst.join("; ")}`).toBeLessThanOrEqual(most);
});

test.each(Object.entries(bannedWords))(
  'no more names have the word "%s"',
  (word, { use, most }) => {
    const found = findings["banned words"].filter(({ what }) => what === word);
    const places = found.slice(0, 10).map(({ place }) => place);
    expect(found.length, `write ${use}: ${places.join(", ")}`).toBeLessThanOrEqual(most);
  },
);

test("the glossary has at most 60 terms, in order, each once, and none of the banned words", () => {
  const page = readFileSync(join(root, "docs/glossary.md"), "utf8");
  const terms = [...page.matchAll(/^\| ([^|]+) \| [^|]+ \|$/gm)].map((match) => match[1] ?? "");
  expect(terms.shift()).toBe("Term");
  expect(terms.length).toBeLessThanOrEqual(60);
  expect(terms).toEqual([...new Set(terms)].toSorted());
  expect(wordsOf(page).filter((word) => Object.hasOwn(bannedWords, word))).toEqual([]);
});
