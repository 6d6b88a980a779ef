import { expect, test } from "vitest";
import { sourceFiles } from "./source.ts";

const indexes = sourceFiles("packages/*/src/index.ts");

function exportedNames(text: string): string[] {
  return [...text.matchAll(/export (type )?\{([^}]*)\}/g)]
    .flatMap(([, type, list]) =>
      (list ?? "")
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== "")
        .map((name) => `${type ?? ""}${name}`),
    )
    .toSorted();
}

/** What each package exports, by name: a change of these is a change for users and belongs in a release note. */
test.each(indexes)("$path exports these names", ({ path, text }) => {
  expect(text, `${path} re-exports names one by one`).not.toMatch(/export \*/);
  expect(exportedNames(text)).toMatchSnapshot();
});

test("rayling exports what core exports, all of it", () => {
  const names = (name: string): string[] =>
    exportedNames(indexes.find(({ path }) => path === `packages/${name}/src/index.ts`)?.text ?? "");
  expect(names("rayling")).toEqual(names("core"));
});
