/**
 * Where this package's own files are. In the workspace every module is a file below `src`; built, few files hold all of them (packages/build.ts), and this one,
 * which hosts and drivers share, lies in the folder itself.
 */
const isBuilt: boolean = !import.meta.url.endsWith(".ts");

/** The folder that all of them are in, with a slash at its end. */
export const ownFolder: URL = new URL(isBuilt ? "." : "..", import.meta.url);

/** What a host of that kind runs. */
export function hostEntry(kind: "thread" | "process"): URL {
  return new URL(`host/${kind}-main.${isBuilt ? "js" : "ts"}`, ownFolder);
}
