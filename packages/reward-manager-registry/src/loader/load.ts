/**
 * Loads a user's score function or reward manager class from a module of theirs.
 * A module is imported once per thread and kept, as every ES module; verl executes a file anew on every load.
 * Every failure names the module and what to do; nothing is called or constructed here.
 */

import {
  RewardExportNotFoundError,
  RewardExportTypeError,
  RewardModuleImportError,
} from "../errors.ts";
import type { RewardManagerClass } from "../managers/reward-manager.ts";
import { withRewardKwargs } from "../scoring/compute-score.ts";
import type { ComputeScore } from "../scoring/compute-score.ts";
import type { Scorer } from "../scoring/scorer.ts";
import { describeValue, isClass } from "../value-description.ts";
import { resolveRewardModule } from "./module-url.ts";
import { parseRewardSpec } from "./reward-spec.ts";
import type { RewardSpec } from "./reward-spec.ts";

export interface LoadOptions {
  /** Where relative paths and packages start. Default process.cwd(). */
  readonly baseDirectory?: string | undefined;
}

const FUNCTION_NAMES: readonly string[] = ["computeScore", "compute_score", "default"];

/**
 * The score function that the spec (or its text PATH[:name]) names, with its rewardKwargs bound.
 * Without a name: `computeScore`, else `compute_score`, else the default export.
 * Rejects with InvalidRewardSpecError, RewardModuleNotFoundError, RewardModuleImportError, RewardExportNotFoundError, RewardExportTypeError.
 */
export async function loadComputeScore(
  spec: string | RewardSpec,
  options: LoadOptions = {},
): Promise<ComputeScore> {
  const { computeScore } = await loadScorer(spec, options);
  return computeScore;
}

/**
 * The same with what may come with it: the spec may also name an object or a class with a method computeScore, and postProcessScores and log if it has them. A class is made
 * without arguments, once for each thread that loads it; what its constructor throws is thrown on.
 */
export async function loadScorer(
  spec: string | RewardSpec,
  options: LoadOptions = {},
): Promise<Scorer> {
  const { path, name, rewardKwargs } = typeof spec === "string" ? parseRewardSpec(spec) : spec;
  const exports = await importModule(path, options);
  const wanted = name === undefined ? FUNCTION_NAMES : [name];
  const exportName = pickExport(path, exports, wanted);
  const value = exports[exportName];
  if (typeof value === "function" && !isClass(value)) {
    return { computeScore: withRewardKwargs(value as ComputeScore, rewardKwargs) };
  }
  const scorer = isClass(value) ? new (value as new () => Partial<Scorer>)() : value;
  if (!isScorer(scorer)) {
    throw new RewardExportTypeError(path, exportName, "function", describeValue(value));
  }
  const { postProcessScores, log } = scorer;
  return {
    computeScore: withRewardKwargs((input) => scorer.computeScore(input), rewardKwargs),
    ...(postProcessScores === undefined
      ? {}
      : { postProcessScores: (scores) => scorer.postProcessScores?.(scores) ?? scores }),
    ...(log === undefined ? {} : { log: (entry) => scorer.log?.(entry) }),
  };
}

function isScorer(value: unknown): value is Scorer {
  if (typeof value !== "object" || value === null) return false;
  const { computeScore, postProcessScores, log } = value as Partial<Scorer>;
  const isMethod = (part: unknown): boolean => part === undefined || typeof part === "function";
  return typeof computeScore === "function" && isMethod(postProcessScores) && isMethod(log);
}

/**
 * The reward manager class that the spec names. Without a name: the default export, else the only class among the exports.
 * Whether its instances have runSingle is checked when a registry creates one. Rejects as loadComputeScore does.
 */
export async function loadRewardManagerClass(
  spec: string | RewardSpec,
  options: LoadOptions = {},
): Promise<RewardManagerClass> {
  const { path, name } = typeof spec === "string" ? parseRewardSpec(spec) : spec;
  const exports = await importModule(path, options);
  const classes = exportNames(exports).filter((key) => isClass(exports[key]));
  const wanted =
    name !== undefined ? [name] : classes.length === 1 ? ["default", ...classes] : ["default"];
  const exportName = pickExport(path, exports, wanted);
  const value = exports[exportName];
  if (!isClass(value))
    throw new RewardExportTypeError(path, exportName, "class", describeValue(value));
  return value as RewardManagerClass;
}

async function importModule(path: string, options: LoadOptions): Promise<Record<string, unknown>> {
  const url = resolveRewardModule(path, options.baseDirectory ?? process.cwd());
  try {
    return (await import(url)) as Record<string, unknown>;
  } catch (cause) {
    throw new RewardModuleImportError(path, url, cause);
  }
}

function pickExport(
  path: string,
  exports: Record<string, unknown>,
  wanted: readonly string[],
): string {
  const found = wanted.find((name) => Object.hasOwn(exports, name));
  if (found === undefined) throw new RewardExportNotFoundError(path, wanted, exportNames(exports));
  return found;
}

/** Node adds "module.exports" to the names of a CommonJS module; nobody wrote that export. */
function exportNames(exports: Record<string, unknown>): string[] {
  return Object.keys(exports).filter((name) => name !== "module.exports");
}
