/**
 * Methods of a user's class or object by the names under which they are called: ours, or verl's. One that is written almost so would never be called, and nobody would notice: it is refused.
 */

import leven from "leven";
import type { UserFunction } from "../calling/callable.ts";
import { RewardExportTypeError, RewardHookNameError } from "../errors.ts";
import { describeValue } from "../value-description.ts";

/** Each with verl's name, or the documents'. */
const scorerHooks = {
  computeScore: ["computeScore", "compute_score"],
  computeScores: ["computeScores", "compute_scores"],
  postProcessScores: ["postProcessScores", "post_process_scores"],
  log: ["log"],
} as const;

export interface Hook {
  /** As it is written there. */
  readonly name: string;
  readonly method: UserFunction;
}

export type ScorerHooks = { readonly [Name in keyof typeof scorerHooks]: Hook | undefined };

/** All that are there. Throws RewardHookNameError, and RewardExportTypeError where a hook is no function. */
export function hooksOf(scorer: unknown, path: string, exportName: string): ScorerHooks {
  const entries = Object.entries(scorerHooks).map(([key, names]) => {
    const name = names.find((one) => hasMember(scorer, one));
    return [key, name === undefined ? undefined : hookAt(scorer, name, path, exportName)] as const;
  });
  const hooks = Object.fromEntries(entries) as ScorerHooks;
  const absent = Object.keys(scorerHooks).filter(
    (key) => hooks[key as keyof ScorerHooks] === undefined,
  );
  // The two score functions are alike, and each stands for both.
  const hasScore = hooks.computeScore !== undefined || hooks.computeScores !== undefined;
  const wanted = absent.filter((name) => !(hasScore && name.startsWith("computeScore")));
  const exact = new Set<string>(Object.values(scorerHooks).flat());
  const others = methodNames(scorer).filter((name) => !exact.has(name));
  refuseAlike(others, wanted, path, exportName);
  return hooks;
}

/** Throws RewardHookNameError where one of these names is almost one that is not there. @param absent hooks that nothing is called as */
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

/** Of it and of all that it inherits, but for what every object has; private ones (`_helper`) are its own business. */
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

/** Short names are alike too easily: of those the case alone may differ. */
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
  const method = memberOf(scorer as object, name);
  if (typeof method === "function") return { name, method: method as UserFunction };
  throw new RewardExportTypeError(path, `${exportName}.${name}`, "function", describeValue(method));
}

function memberOf(value: object, name: string): unknown {
  return (value as Readonly<Record<string, unknown>>)[name];
}
