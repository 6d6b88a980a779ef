/** What npm shows of each package, and what its installation brings. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bundled } from "../../packages/build.ts";
import { packages } from "../fixtures/build-packages.ts";
import { root, sourceFiles } from "./source.ts";

interface Manifest {
  readonly description?: string;
  readonly keywords?: readonly string[];
  readonly license?: string;
  readonly repository?: { readonly url: string; readonly directory: string };
  readonly homepage?: string;
  readonly bugs?: unknown;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

const manifestOf = (name: string): Manifest =>
  JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8")) as Manifest;

/** They have build scripts, or are needed by few users. */
const notBrought = ["@huggingface/hub", "esbuild", "msgpackr", "msgpackr-extract", "selfsigned"];

describe.each(packages)("%s", (name) => {
  const manifest = manifestOf(name);

  test("says what it is", () => {
    expect(manifest.description).toMatch(/\.$/);
    expect(manifest.license).toBe("Apache-2.0");
    expect(manifest.keywords?.length).toBeGreaterThan(4);
    expect(manifest.keywords).toEqual([...new Set(manifest.keywords)].toSorted());
  });

  test("names the repository as all others do, or none does", () => {
    const { repository, homepage, bugs } = manifestOf("rayling");
    expect(manifest.repository?.url).toBe(repository?.url);
    expect(manifest.homepage === undefined).toBe(homepage === undefined);
    expect(manifest.bugs).toEqual(bugs);
    if (repository !== undefined) {
      expect(manifest.repository?.directory).toBe(`packages/${name}`);
    }
  });

  test("brings nothing that has a build script, or that only few need", () => {
    expect(Object.keys(manifest.dependencies).filter((one) => notBrought.includes(one))).toEqual(
      [],
    );
    for (const peer of Object.keys(manifest.peerDependencies ?? {})) {
      expect({ peer, ...manifest.peerDependenciesMeta?.[peer] }).toEqual({ peer, optional: true });
    }
  });
});

test("what is loaded by its place is published as a file of its own", () => {
  const named = /\bownModule\(\s*"([^"]+)"/g;
  const ofPython = /\b(?:Child|command|module)\(\s*"([a-z-]+\/[^"]+)"|_MODULE = "([^"]+)"/g;
  const own = sourceFiles("packages/{trainer,rayling}/src/**/*.ts").flatMap(({ path, text }) =>
    [...text.matchAll(named)].map(([, module]) => [path.split("/")[1] ?? "", module ?? ""]),
  );
  const asked = sourceFiles("python/src/rayling/**/*.py").flatMap(({ text }) =>
    [...text.matchAll(ofPython)].map(([, module, other]) => ["rayling", module ?? other ?? ""]),
  );
  expect(own.length).toBeGreaterThan(3);
  expect(asked.length).toBeGreaterThan(6);
  const missing = [...own, ...asked].filter(
    ([name = "", module = ""]) => bundled[name]?.includes(module) !== true,
  );
  expect(missing).toEqual([]);
});
