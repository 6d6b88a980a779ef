/**
 * Where this package's own files are. In the workspace every module is a file below `src`; built, few files hold all of them (packages/build.ts), and this one,
 * which hosts and drivers share, lies in the folder itself.
 *
 * A bundler may have put this code into a file of the user's. Nothing lies beside it then, and who asks for it gets `bundledInto`.
 */
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import util from "node:util";

/** Bundlers leave it out where they make CommonJS. */
const here = (import.meta.url as string | undefined) ?? "";

const isBuilt: boolean = !here.endsWith(".ts");

/** The folder that all of them are in, with a slash at its end. Of no file, where that is not known. */
export const ownFolder: URL = here.startsWith("file:")
  ? new URL(isBuilt ? "." : "..", here)
  : new URL("rayling://bundled/");

/** What a host of that kind runs. */
export function hostEntry(kind: "thread" | "process"): URL {
  return ownFile(`host/${kind}-main`);
}

/** @param path below the folder, without an ending; one that has a file of its own when it is built, too */
export function ownFile(path: string): URL {
  return new URL(`${path}.${isBuilt ? "js" : "ts"}`, ownFolder);
}

const ownPlaces: readonly string[] = placesOf(ownFolder);

/** Whether a text, as a line of a stack, names one of them. Stacks that are mapped back name paths, and sources. */
export function namesOwnFile(text: string): boolean {
  return ownPlaces.some((place) => text.includes(place));
}

function placesOf(folder: URL): readonly string[] {
  if (folder.protocol !== "file:") return [];
  const folders = isBuilt ? [folder, new URL("../src/", folder)] : [folder];
  return folders.flatMap((one) => [one.href, fileURLToPath(one)]);
}

/** What holds this code where that is not the package's own file: hosts cannot be started from it. */
export function bundledInto(): string | undefined {
  // Some bundlers put the URL that it had before in the place of `import.meta.url`.
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
