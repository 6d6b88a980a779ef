/**
 * The settings that an actor or task has from the code that starts it, as in Ray: variables are
 * merged, and in every other part the child's own settings take the place of the inherited ones.
 *
 * Permissions are the exception, because one `.remote()` would otherwise take code out of them: a
 * child may name its own, and none that its parent lacks.
 */
import { isAbsolute, resolve, sep } from "node:path";
import type { Permissions, RuntimeEnv } from "../../rpc/directory.ts";
import { withoutUndefined } from "../../shared/options.ts";
import { show } from "../../shared/text/show.ts";
import { hasReferences, inOrder, mergedVariables } from "./env-references.ts";
import { moduleFlags } from "./host-flags.ts";

/** Returns settings as they were given, with variables that refer to none of their own. */
export function ownEnv<Env extends RuntimeEnv | undefined>(given: Env): Env {
  return given?.env === undefined ? given : { ...given, env: inOrder(given.env) };
}

/**
 * Merges settings with those around them; `env` variable by variable. The variables of either refer
 * to none of their own.
 */
export function mergedEnv(
  outer: RuntimeEnv | undefined,
  own: RuntimeEnv | undefined,
): RuntimeEnv | undefined {
  if (outer === undefined || own === undefined) return own ?? outer;
  const { excludes, ...rest } = outer;
  return {
    ...rest,
    // The excludes belong to the folder.
    ...(own.workingDir === undefined && excludes !== undefined ? { excludes } : {}),
    ...withoutUndefined(own),
    ...(outer.env === undefined ? {} : { env: mergedVariables(outer.env, own.env ?? {}) }),
  };
}

/**
 * Returns inherited settings as a thread can have them: flags of a whole process would end a thread
 * that never asked for them.
 */
export function asForThread(inherited: RuntimeEnv | undefined): RuntimeEnv | undefined {
  if (inherited?.execArgv === undefined) return inherited;
  const { execArgv, ...rest } = inherited;
  const flags = moduleFlags(execArgv);
  return flags.length === 0 ? rest : { ...rest, execArgv: flags };
}

/** Equal for hosts that may take each other's place. Permitted files depend on the module. */
export function kindOfInherited(inherited: RuntimeEnv, moduleUrl: string): string {
  return JSON.stringify([inherited, inherited.permissions === undefined ? undefined : moduleUrl]);
}

/** Returns what settings ask for beyond the inherited permissions; undefined if nothing. */
export function widening(
  own: RuntimeEnv | undefined,
  inherited: RuntimeEnv | undefined,
): string | undefined {
  const given = inherited?.permissions;
  if (own === undefined || given === undefined) return undefined;
  if (givesPermissions(own.env)) {
    return "env.NODE_OPTIONS must not hold permissions, nor refer to variables that may, because the code that starts it has limited ones";
  }
  const asked = own.permissions ?? {};
  for (const name of ["allowFsRead", "allowFsWrite"] as const) {
    const places = given[name] ?? [];
    const path = asked[name]?.find((one) => !places.some((place) => covers(place, one)));
    if (path === undefined) continue;
    const all = places.length === 0 ? "nothing" : `only ${places.map(show).join(", ")}`;
    return `permissions.${name} asks for ${show(path)}, and the code that starts it has ${all}`;
  }
  const flag = flags.find((name) => asked[name] === true && given[name] !== true);
  return flag === undefined
    ? undefined
    : `permissions.${flag} is asked for, and the code that starts it does not have it`;
}

const flags = [
  "allowChildProcess",
  "allowWorker",
  "allowAddons",
  "allowNet",
] as const satisfies readonly (keyof Permissions)[];

/**
 * Node takes flags with underscores, too, and with quotes and backslashes around their letters.
 * Variables around them may hold some.
 */
function givesPermissions(env: RuntimeEnv["env"] = {}): boolean {
  return Object.entries(inOrder(env)).some(
    ([name, text]) =>
      name.toUpperCase() === "NODE_OPTIONS" &&
      (hasReferences(text) ||
        /--(no[-_])?(experimental[-_])?(allow|permission)/.test(text.replaceAll(/["'\\]/g, ""))),
  );
}

/**
 * Whether a permitted place holds all of another one. A relative path has another meaning on
 * another machine, so it holds relative ones only.
 */
function covers(place: string, asked: string): boolean {
  if (place === "*") return true;
  if (asked === "*" || isAbsolute(place) !== isAbsolute(asked)) return false;
  const outer = patternOf(place);
  const inner = patternOf(asked);
  if (outer.isOpen) {
    const isFolder = !inner.isOpen && inner.start + sep === outer.start;
    return isFolder || inner.start.startsWith(outer.start);
  }
  const folder = outer.start.endsWith(sep) ? outer.start : outer.start + sep;
  return inner.start.startsWith(folder) || (!inner.isOpen && inner.start === outer.start);
}

/** Node reads a path up to its first star, and takes all that begins with that. */
function patternOf(path: string): { readonly start: string; readonly isOpen: boolean } {
  const whole = resolve(path);
  const star = whole.indexOf("*");
  return star < 0 ? { start: whole, isOpen: false } : { start: whole.slice(0, star), isOpen: true };
}
