/**
 * Packages that few users need are optional peer dependencies: an installation does not bring
 * them. Where one is missing, the error says how it is installed.
 *
 * Each is imported inside a `try`: bundlers then take a missing one for one that may be missing.
 */

/**
 * Returns what is to be thrown where a package could not be imported.
 *
 * @param name of the npm package
 * @param error of its import
 * @param missing makes the error of what it says is missing
 */
export function whyNotImported(
  name: string,
  error: unknown,
  missing: (problem: string, cause: unknown) => Error,
): unknown {
  if (!isMissing(name, error)) return error;
  return missing(`needs the package ${name}, which is not installed: npm install ${name}`, error);
}

/** Not an import of the package's own that fails. */
function isMissing(name: string, error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  return error.code === "ERR_MODULE_NOT_FOUND" && error.message.includes(`'${name}'`);
}
