/**
 * rayling's own packages, which are never brought anywhere: code that was brought to a machine gets those of the agent there, the very modules that its host runs
 * on. Where they are at the driver is told along, because they have actors, too (a Queue is one), and these are known by the driver's URL.
 */
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export function isRuntimePackage(name: string): boolean {
  return name === "rayling" || name.startsWith("@rayling/");
}

/** The runtime's package that a module belongs to, if it does: its name and folder. */
export function runtimePackageOf(
  file: string,
): { readonly name: string; readonly folder: string } | undefined {
  for (let at = dirname(file); ; at = dirname(at)) {
    const name = nameIn(at);
    if (name !== undefined) return isRuntimePackage(name) ? { name, folder: at } : undefined;
    if (dirname(at) === at) return undefined;
  }
}

/** Those that this process can reach, from here and from the program that it runs, by name. */
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
    const { name, private: isPrivate } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    // What is never published is somebody's own, whatever its name.
    return isPrivate === true ? "" : String(name);
  } catch {
    // Most folders have none.
    return undefined;
  }
}

function namesIn(scope: string): string[] {
  try {
    return readdirSync(scope).map((name) => `@rayling/${name}`);
  } catch {
    // Most folders have none.
    return [];
  }
}

function resolved(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // It is not there.
    return undefined;
  }
}
