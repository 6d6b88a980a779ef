/**
 * Where this package's own files are. In the workspace every module is a file below `src`; built, all of them are in few files of one folder, because a host
 * spends most of its start on opening files.
 */
const isBuilt: boolean = !import.meta.url.endsWith(".ts");

/** The folder that all of them are in, with a slash at its end. */
export const ownFolder: URL = new URL(isBuilt ? "." : "..", import.meta.url);

/** What a host of that kind runs. */
export function hostEntry(kind: "thread" | "process"): URL {
  return new URL(isBuilt ? `${kind}-main.js` : `host/${kind}-main.ts`, ownFolder);
}
