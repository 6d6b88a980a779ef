/**
 * rayling's own packages, which are never sent: code on another machine gets the agent's, the very
 * modules that its host runs on. The driver reports their places on its side, because they contain
 * actors (such as Queue), which are known by the driver's URL.
 */
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export function isRuntimePackage(name: string): boolean {
  return name === "rayling" || name.startsWith("@rayling/");
}

/** Returns the name and folder of the runtime's package that contains a module, if one does. */
export function runtimePackageOf(
  file: string,
): { readonly name: string; readonly folder: string } | undefined {
  for (let at = dirname(file); ; at = dirname(at)) {
    const name = nameIn(at);
    if (name !== undefined) return isRuntimePackage(name) ? { name, folder: at } : undefined;
    if (dirname(at) === at) return undefined;
  }
}

/** Returns the packages, by name, that this process can reach from here and from its program. */
export function runtimePackagesHere(
  program: string | undefined = process.argv[1],
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const add = (name: string, folder: string): void => {
    if (isRuntimePackage(name) && !found.has(name)) found.set(name, folder);
  };
  for (const start of [fileURLToPath(import.meta.url), program]) {
    const real = start === undefined ? undefined : resolved(start);
    for (let at = real ?? "/"; dirname(at) !== at; at = dirname(at)) {
      const own = nameIn(at);
      if (own !== undefined) add(own, at);
      const modules = join(at, "node_modules");
      for (const name of ["rayling", ...namesIn(join(modules, "@rayling"))]) {
        const folder = resolved(join(modules, name));
        if (folder !== undefined) add(name, folder);
      }
    }
  }
  return found;
}

function nameIn(folder: string): string | undefined {
  try {
    const text = readFileSync(join(folder, "package.json"), "utf8");
    const { name, private: isPrivate }: Readonly<Record<string, unknown>> = JSON.parse(text);
    // A private package belongs to the user, whatever its name.
    return isPrivate === true ? "" : String(name);
  } catch {
    // Most folders have no package.json.
    return undefined;
  }
}

function namesIn(scope: string): string[] {
  try {
    return readdirSync(scope).map((name) => `@rayling/${name}`);
  } catch {
    // Most folders have no such scope.
    return [];
  }
}

function resolved(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // The path does not exist.
    return undefined;
  }
}
