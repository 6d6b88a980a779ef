/** The table of mutants (test/mutants) keeps up with the code: each fault can still be put in. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mutants } from "../mutants/mutants.ts";
import { root } from "./source.ts";

test.each(mutants)("$id stands once in its file, and its tests are there", (mutant) => {
  const text = readFileSync(join(root, "packages", `${mutant.file}.ts`), "utf8");
  expect(text.split(mutant.find)).toHaveLength(2);
  expect(mutant.replace).not.toBe(mutant.find);
  expect(mutant.tests.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
