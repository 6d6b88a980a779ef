/**
 * Where this package's own files are. In the workspace every module is a file below `src`. Built, a
 * few files hold all modules (packages/build.ts), and this module, which hosts and drivers share,
 * lies in the folder itself.
 *
 * A bundler may have put this code into a file of the user's. No own file lies beside it then, and
 * `bundledInto` names the bundle.
 */
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import util from "node:util";
import { isReadFromFile } from "./compiled/keep-compiled.ts";

/** Bundlers that make CommonJS leave `import.meta.url` undefined. */
const here = (import.meta.url as string | undefined) ?? "";

const isBuilt: boolean = !here.endsWith(".ts");

/**
 * The folder of all own files, with a slash at its end. The URL names no file when the folder is
 * unknown.
 */
export const ownFolder: URL = here.startsWith("file:")
  ? new URL(isBuilt ? "." : "..", here)
  : new URL("rayling://bundled/");

/** Returns the entry module of hosts of that kind. */
export function hostEntry(kind: "thread" | "process"): URL {
  return ownFile(`host/${kind}-main`);
}

/**
 * @param path below the folder, without an extension; the built package has a file of that path,
 * too
 */
export function ownFile(path: string): URL {
  return new URL(`${path}.${isBuilt ? "js" : "ts"}`, ownFolder);
}

const ownPlaces: readonly string[] = placesOf(ownFolder);

/**
 * Whether a text, such as a line of a stack, names one of the own files. Source-mapped stacks name
 * paths and sources.
 */
export function namesOwnFile(text: string): boolean {
  return ownPlaces.some((place) => text.includes(place));
}

function placesOf(folder: URL): readonly string[] {
  if (folder.protocol !== "file:") return [];
  const folders = isBuilt ? [folder, new URL("../src/", folder)] : [folder];
  return folders.flatMap((one) => [one.href, fileURLToPath(one)]);
}

/**
 * Returns the bundle that holds this code, or undefined when it runs from the package's own file.
 * Hosts cannot start from a bundle.
 */
export function bundledInto(): string | undefined {
  if (isReadFromFile) return existsSync(hostEntry("thread")) ? undefined : "a bundle";
  // Some bundlers replace `import.meta.url` by the URL that the module had before.
  const running = pathOf(util.getCallSites(1, { sourceMap: false })[0]?.scriptName ?? "");
  if (running === undefined) return "a bundle";
  const isOwn = running === pathOf(here) && existsSync(hostEntry("thread"));
  return isOwn ? undefined : `the bundle ${running}`;
}

function pathOf(urlOrPath: string): string | undefined {
  const [plain = ""] = urlOrPath.split("?");
  if (plain.startsWith("file:")) return fileURLToPath(plain);
  return /^(\/|[A-Za-z]:[\\/])/.test(plain) ? fileURLToPath(pathToFileURL(plain)) : undefined;
}
