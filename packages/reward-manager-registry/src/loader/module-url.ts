/**
 * Resolves the path in a reward spec to the URL of an existing module. Packages are resolved by
 * Node's own algorithm, from the base directory and not from this file.
 */

import { statSync } from "node:fs";
import nodeModule from "node:module";
import { resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  InvalidRewardSpecError,
  RewardModuleLanguageError,
  RewardModuleNotFoundError,
} from "../errors.ts";
import { messageOf } from "../values/caught.ts";

/** Returns the URL of the copy of a file on this machine, by the URL that it has at its owner. */
export type Locate = (url: string) => string;

/** Throws RewardModuleNotFoundError, RewardModuleLanguageError or InvalidRewardSpecError. */
export function resolveRewardModule(
  path: string,
  baseDirectory: string,
  locate: Locate = (url) => url,
): string {
  if (path.startsWith("pkg:")) return packageUrl(path, folderHere(baseDirectory, locate));
  const file = filePath(path, baseDirectory);
  if (/\.(?:py[ciwx]?|ipynb)$/i.test(file)) throw new RewardModuleLanguageError(path);
  const url = locate(pathToFileURL(file).href);
  if (!isFile(fileURLToPath(url)))
    throw new RewardModuleNotFoundError(path, file, notFoundAdvice(path, file, baseDirectory));
  return url;
}

function folderHere(folder: string, locate: Locate): string {
  return fileURLToPath(locate(pathToFileURL(resolve(folder) + sep).href));
}

function filePath(path: string, baseDirectory: string): string {
  if (path.startsWith("file:///")) return fileURLToPath(path);
  // verl cuts the scheme off and takes the rest as a path, so file://rewards/my.ts is relative in
  // both.
  if (path.startsWith("file://")) return resolve(baseDirectory, path.slice("file://".length));
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]+):\/\//.exec(path)?.[1];
  if (scheme !== undefined)
    throw new InvalidRewardSpecError(path, `a module cannot be loaded by ${scheme}://.`);
  return resolve(baseDirectory, path);
}

function packageUrl(path: string, baseDirectory: string): string {
  const name = path.replace(/^pkg:(?:\/\/)?/, "");
  if (name === "" || /^[./\\]/.test(name))
    throw new InvalidRewardSpecError(path, "a package name must follow pkg:.");
  let url: string;
  try {
    url = resolveFrom(name, baseDirectory);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new RewardModuleNotFoundError(
      path,
      `${name} from ${baseDirectory}`,
      `${reason}. Install it there, or give another base directory.`,
      { cause },
    );
  }
  if (url.startsWith("file:") && !isFile(fileURLToPath(url))) {
    throw new RewardModuleNotFoundError(
      path,
      fileURLToPath(url),
      "The package exists, but it names a missing file.",
    );
  }
  return url;
}

/**
 * import.meta.resolve ignores a second argument unless a flag is set; a hook that lives for this
 * one call sets the parent.
 */
function resolveFrom(name: string, baseDirectory: string): string {
  const parentURL = pathToFileURL(resolve(baseDirectory) + sep).href;
  const hooks = nodeModule.registerHooks({
    resolve: (specifier, context, nextResolve) =>
      nextResolve(specifier, specifier === name ? { ...context, parentURL } : context),
  });
  try {
    return import.meta.resolve(name, parentURL);
  } finally {
    hooks.deregister();
  }
}

function isFile(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}

function notFoundAdvice(path: string, file: string, baseDirectory: string): string {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true)
    return "That is a directory: name the file in it.";
  if (/^[\w@][\w./@-]*$/.test(path) && !/\.[cm]?[jt]s$/.test(path))
    return `If it is a package, write pkg:${path}.`;
  return `Relative paths start at ${baseDirectory}.`;
}
