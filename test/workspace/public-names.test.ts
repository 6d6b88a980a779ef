import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root, sourceFiles } from "./source.ts";

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

/** Every file that a package gives a public name of its own. */
const entries = sourceFiles("packages/*/package.json").flatMap(({ path, text }) =>
  Object.values((JSON.parse(text) as Manifest).exports)
    .map((target) => (typeof target === "string" ? target : target.default))
    .filter((target) => target.endsWith(".ts"))
    .map((target) => {
      const file = join(path, "..", target);
      return { path: file, text: readFileSync(join(root, file), "utf8") };
    }),
);

function exportedNames(text: string): string[] {
  const listed = [...text.matchAll(/export (type )?\{([^}]*)\}/g)].flatMap(([, type, list]) =>
    (list ?? "")
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "")
      .map((name) => `${type ?? ""}${name}`),
  );
  const declared = [
    ...text.matchAll(
      /^export (?:async )?(?:abstract )?(function|class|const|interface|type) (\w+)/gm,
    ),
  ].map(([, kind, name]) => `${kind === "interface" || kind === "type" ? "type " : ""}${name}`);
  return [...listed, ...declared].toSorted();
}

/** What each package exports, by name: a change of these is a change for users and belongs in a release note. */
test.each(entries)("$path exports these names", ({ path, text }) => {
  expect(text, `${path} re-exports names one by one`).not.toMatch(/export \*/);
  expect(exportedNames(text)).not.toEqual([]);
  expect(exportedNames(text)).toMatchSnapshot();
});

test("rayling exports what core exports, all of it", () => {
  const names = (name: string): string[] =>
    exportedNames(entries.find(({ path }) => path === `packages/${name}/src/index.ts`)?.text ?? "");
  expect(names("rayling")).toEqual(names("core"));
});
