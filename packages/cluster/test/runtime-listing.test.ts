/** The packages of this checkout as another machine would get them. */
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { Listing } from "../src/collect/listing.ts";
import { listRuntime } from "../src/collect/runtime-listing.ts";
import { writeFiles } from "./fixtures/users-project.ts";

test("the command of the copied packages runs where nothing else is", async () => {
  const { root, manifest, folders, conditions } = listRuntime();
  const there = await mkdtemp(join(tmpdir(), "rayling-listing-"));
  onTestFinished(() => rm(there, { recursive: true }));
  const parents = new Set(manifest.files.map(([path]) => dirname(path)));
  await Promise.all([...parents].map((path) => mkdir(join(there, path), { recursive: true })));
  const copies = manifest.files.map(([path]) => copyFile(join(root, path), join(there, path)));
  await Promise.all(copies);
  for (const [path, target] of manifest.links) {
    await mkdir(dirname(join(there, path)), { recursive: true });
    await symlink(target, join(there, path));
  }
  const main = join(there, folders["rayling"] ?? "", "dist/cli/main.js");
  const flags = conditions.map((one) => `--conditions=${one}`);
  const env = { PATH: process.env["PATH"] };
  const run = promisify(execFile)(process.execPath, [...flags, main, "--help"], { env });
  expect((await run).stdout).toContain("score");
  // As the driver's tests run on what is published.
  expect(conditions).toContain("built");
  expect(Object.keys(folders)).toContain("@rayling/trainer");
});

test("declarations, maps, tests and packages for the build stay here", () => {
  const paths = listRuntime().manifest.files.map(([path]) => path);
  expect(paths.filter((path) => /\.d\.[cm]?ts$|\.map$|\.md$/.test(path))).toEqual([]);
  expect(paths.filter((path) => /^packages\/[^/]+\/(?:test|src)\//.test(path))).toEqual([]);
  expect(paths.filter((path) => /\/(?:esbuild|vitest|playwright-core)\//.test(path))).toEqual([]);
});

test.each([
  ["packages side by side, as npm has them", ["one/index.js", "two/index.js"]],
  ["packages of one scope", ["@scope/one/index.js", "@scope/two/index.js"]],
  ["one package", ["one/lib/index.js", "one/lib/more.js"]],
])("%s keep the folder by which they find each other", async (_name, paths) => {
  const project = await realpath(await mkdtemp(join(tmpdir(), "rayling-listing-")));
  onTestFinished(() => rm(project, { recursive: true }));
  const installed = paths.map((path) => `node_modules/${path}`);
  await writeFiles(project, Object.fromEntries(installed.map((path) => [path, ""])));
  const listing = new Listing(() => false);
  for (const path of installed) listing.addFile(join(project, path));
  const { root, manifest } = listing.finish();
  expect(root).toBe(project);
  expect(manifest.files.map(([path]) => path)).toEqual(installed);
});
