/**
 * Methods of a user's class or object under the names by which they are called: the names here, or
 * verl's. A method with an almost matching name would silently never be called, so it is refused.
 */

import leven from "leven";
import type { UserFunction } from "../calling/callable.ts";
import { RewardExportTypeError, RewardHookNameError } from "../errors.ts";
import { describeValue, isFunction } from "../value-description.ts";

/** Each hook with its names here, in verl, or in verl's documentation. */
const scorerHooks = {
  computeScore: ["computeScore", "compute_score"],
  computeScores: ["computeScores", "compute_scores"],
  postProcessScores: ["postProcessScores", "post_process_scores"],
  log: ["log"],
} as const;

export interface Hook {
  /** The name as it is written there. */
  readonly name: string;
  readonly method: UserFunction;
}

export type ScorerHooks = { readonly [Name in keyof typeof scorerHooks]: Hook | undefined };

/**
 * Returns all existing hooks. Throws RewardHookNameError, and RewardExportTypeError for a hook that
 * is no function.
 */
export function hooksOf(scorer: unknown, path: string, exportName: string): ScorerHooks {
  const hookOf = (names: readonly string[]): Hook | undefined => {
    const name = names.find((one) => hasMember(scorer, one));
    return name === undefined ? undefined : hookAt(scorer, name, path, exportName);
  };
  const hooks: ScorerHooks = {
    computeScore: hookOf(scorerHooks.computeScore),
    computeScores: hookOf(scorerHooks.computeScores),
    postProcessScores: hookOf(scorerHooks.postProcessScores),
    log: hookOf(scorerHooks.log),
  };
  const absent = Object.entries(hooks).flatMap(([key, hook]) => (hook === undefined ? [key] : []));
  // The names of the two score functions are alike, and either one suffices.
  const hasScore = hooks.computeScore !== undefined || hooks.computeScores !== undefined;
  const wanted = absent.filter((name) => !(hasScore && name.startsWith("computeScore")));
  const exact = new Set<string>(Object.values(scorerHooks).flat());
  const others = methodNames(scorer).filter((name) => !exact.has(name));
  refuseAlike(others, wanted, path, exportName);
  return hooks;
}

/**
 * Throws RewardHookNameError when a name almost matches a missing hook.
 *
 * @param absent hooks that do not exist
 */
export function refuseAlike(
  names: readonly string[],
  absent: readonly string[],
  path: string,
  exportName: string,
): void {
  for (const name of names) {
    const meant = absent.find((hook) => isAlike(name, hook));
    if (meant !== undefined) throw new RewardHookNameError(path, exportName, name, meant);
  }
}

/**
 * Returns the methods of an object and of all that it inherits, except Object's; private ones
 * (`_helper`) do not count.
 */
export function methodNames(value: unknown): string[] {
  const names = new Set<string>();
  for (let object = value; isOwn(object); object = Object.getPrototypeOf(object)) {
    for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
      const isMethod = typeof member.value === "function" && name !== "constructor";
      if (isMethod && !name.startsWith("_")) names.add(name);
    }
  }
  return [...names];
}

function isOwn(value: unknown): value is object {
  const isShared = value === Object.prototype || value === Function.prototype;
  return !isShared && value !== null && (typeof value === "object" || typeof value === "function");
}

/** Short names are alike too easily: only their case may differ. */
function isAlike(name: string, hook: string): boolean {
  const [one, other] = [plain(name), plain(hook)];
  return leven(one, other) <= (other.length < 8 ? 0 : 2);
}

function plain(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}

function hasMember(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && memberOf(value, name) !== undefined;
}

function hookAt(scorer: unknown, name: string, path: string, exportName: string): Hook {
  const method = memberOf(Object(scorer), name);
  if (isFunction(method)) return { name, method };
  throw new RewardExportTypeError(path, `${exportName}.${name}`, "function", describeValue(method));
}

function memberOf(value: object, name: string): unknown {
  return Reflect.get(value, name);
}
