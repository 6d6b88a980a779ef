import { expect, test } from "vitest";
import { sourceFiles } from "./source.ts";

/** What each package exports, by name: a change of these is a change for users and belongs in a release note. */
test.each(sourceFiles("packages/*/src/index.ts"))("$path exports these names", ({ path, text }) => {
  const names = [...text.matchAll(/export (type )?\{([^}]*)\}/g)].flatMap(([, type, list]) =>
    (list ?? "")
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "")
      .map((name) => `${type ?? ""}${name}`),
  );
  expect(text, `${path} re-exports names one by one`).not.toMatch(/export \*/);
  expect(names.toSorted()).toMatchSnapshot();
});
