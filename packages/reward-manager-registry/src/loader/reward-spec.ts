/**
 * The spec of a user's reward function or manager class: a module path, an export and fixed
 * arguments (verl `custom_reward_function.{path,name,reward_kwargs}`), and its short form on a
 * command line, PATH[:name]. Pure text; it does not access the file system.
 */

import { InvalidRewardSpecError } from "../errors.ts";
import { unknownOption } from "../option-names.ts";
import type { OptionNames } from "../option-names.ts";

/** The place of a reward function or manager class: a module and an export. */
export interface RewardSpec {
  /** ./reward.ts, /abs/reward.ts, file:///abs/reward.ts, pkg:name or pkg:name/sub. */
  readonly path: string;
  /** The export to take; without it the loader tries its default names. */
  readonly name?: string | undefined;
  /** Arguments that override those of each call. Functions only. */
  readonly rewardKwargs?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Whether several functions have the same rewardKwargs, and each takes its own of them. Otherwise
   * one that the function takes nowhere is a mistake. Default: false.
   */
  readonly areKwargsShared?: boolean | undefined;
}

const fieldNames: OptionNames<RewardSpec> = {
  path: true,
  name: true,
  rewardKwargs: true,
  areKwargsShared: true,
};

/** Reads a spec or its text. Throws InvalidRewardSpecError, also for a field that there is not. */
export function rewardSpecOf(spec: string | RewardSpec): RewardSpec {
  if (typeof spec === "string") return parseRewardSpec(spec);
  const problem = unknownOption(spec, fieldNames);
  if (problem === undefined) return spec;
  const { option, expected, received } = problem;
  const what = `its field ${option} must be ${expected}; it is ${received}.`;
  throw new InvalidRewardSpecError(spec.path, what);
}

const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
// Colons that belong to the path: pkg:name, file:…, and C: of Windows.
const PATH_PREFIX = /^(?:pkg|file|[A-Za-z])$/;

/**
 * Reads PATH[:name]. The text behind the last colon is a name if it contains no slash and the colon
 * is not that of `pkg:`, `file:` or a drive letter. Throws InvalidRewardSpecError for an empty path
 * or a name that is no identifier.
 */
export function parseRewardSpec(text: string): RewardSpec {
  const colon = text.lastIndexOf(":");
  const path = text.slice(0, Math.max(colon, 0));
  const name = text.slice(colon + 1);
  if (colon < 0 || /[/\\]/.test(name) || PATH_PREFIX.test(path)) {
    if (text.trim() === "") throw new InvalidRewardSpecError(text, "the path is empty.");
    return { path: text };
  }
  if (path.trim() === "") throw new InvalidRewardSpecError(text, "the path is empty.");
  if (!IDENTIFIER.test(name))
    throw new InvalidRewardSpecError(text, `"${name}" is no export name.`);
  return { path, name };
}
