/**
 * Packages that few users need are optional peer dependencies: an installation does not bring
 * them. Where one is missing, the error says how it is installed.
 */

/**
 * @param name of the npm package
 * @param load imports it
 * @param missing makes the error of what it says is missing
 */
export async function neededPackage<Module>(
  name: string,
  load: () => Promise<Module>,
  missing: (problem: string, cause: unknown) => Error,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(name, error)) throw error;
    throw missing(`needs the package ${name}, which is not installed: npm install ${name}`, error);
  }
}

/** Not an import of the package's own that fails. */
function isMissing(name: string, error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  return error.code === "ERR_MODULE_NOT_FOUND" && error.message.includes(`'${name}'`);
}
