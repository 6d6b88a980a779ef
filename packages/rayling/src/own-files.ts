/**
 * Where this package's own files are. In the workspace every module is a file below `src`;
 * published, a few files in `dist` hold all modules (packages/build.ts), so that none knows its
 * place from its own URL. Modules that are loaded by a URL stay files of their own there.
 */

/**
 * The last folder of such a name: the package may lie in another one. Bundlers that make CommonJS
 * leave `import.meta.url` undefined, and nothing is found then.
 */
const [, folder = "file:///", code = "dist"] = /^(.*\/)(src|dist)\//.exec(import.meta.url) ?? [];

/** Whether the package's sources run as they are. */
export const isSource: boolean = code === "src";

/** @param path from the package's folder */
export function ownFile(path: string): URL {
  return new URL(path, folder);
}

/** @param path below `src`, without an ending: of a module that is a file in `dist`, too */
export function ownModule(path: string): URL {
  return ownFile(`${code}/${path}.${isSource ? "ts" : "js"}`);
}
