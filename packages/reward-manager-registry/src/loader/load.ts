/**
 * Loads a user's score function or reward manager class from one of the user's modules. A module is
 * imported once per thread and kept, like every ES module; verl executes a file anew on every load.
 * Every failure names the module and what to do. Only classes of scorers are constructed here, and
 * no score function is called.
 */

import {
  RewardExportNotFoundError,
  RewardExportTypeError,
  RewardFunctionSignatureError,
  RewardModuleImportError,
} from "../errors.ts";
import type { RewardManagerClass } from "../managers/reward-manager.ts";
import type { CallClock } from "../calling/call-clock.ts";
import { calledFunction, calledGroupFunction } from "../calling/callable.ts";
import type { CallableOptions, CalledFunction, UserFunction } from "../calling/callable.ts";
import { checkOptionNames } from "../option-names.ts";
import type { OptionNames } from "../option-names.ts";
import type { ComputeScore } from "../scoring/compute-score.ts";
import { GroupScorer } from "../scoring/group-scorer.ts";
import type { Scorer } from "../scoring/scorer.ts";
import { describeValue, isClass, isFunction } from "../value-description.ts";
import { hooksOf, refuseAlike, methodNames } from "./hooks.ts";
import type { Hook } from "./hooks.ts";
import { type Locate, resolveRewardModule } from "./module-url.ts";
import { rewardSpecOf } from "./reward-spec.ts";
import type { RewardSpec } from "./reward-spec.ts";

/** Where modules are looked for, and what functions get. */
export interface LoadOptions {
  /** The base of relative paths and packages. Default process.cwd(). */
  readonly baseDirectory?: string | undefined;
  /** Finds the copy of a file where the code was brought to this machine. Default: the file. */
  readonly locate?: Locate | undefined;
  /** Returns the function's `signal` on each read. Default: it has none. */
  readonly signal?: (() => AbortSignal) | undefined;
  /**
   * Called for each call that reads its context (`step`, `lane`, `uid`, `group`), before its score
   * is there.
   */
  readonly onContext?: (() => void) | undefined;
  /** Measures the calls of a score function. */
  readonly clock?: CallClock | undefined;
}

const optionNames: OptionNames<LoadOptions> = {
  baseDirectory: true,
  locate: true,
  signal: true,
  onContext: true,
  clock: true,
};

/** A scorer that was loaded from a module. */
export interface LoadedScorer extends Scorer {
  /** Whether its function is declared `async`; others may return promises, too. */
  readonly isAsync: boolean;
}

const FUNCTION_NAMES: readonly string[] = [
  "computeScore",
  "compute_score",
  "computeScores",
  "compute_scores",
  "default",
];
const GROUP_NAMES: readonly string[] = ["computeScores", "compute_scores"];

/**
 * Loads the score function that the spec (or its text PATH[:name]) names, with its rewardKwargs
 * bound. Without a name it takes `computeScore`, else `compute_score`, else `computeScores`, else
 * `compute_scores`, else the default export.
 *
 * Rejects with InvalidRewardSpecError, RewardModuleNotFoundError, RewardModuleImportError,
 * RewardExportNotFoundError, RewardExportTypeError, RewardFunctionSignatureError for unclear
 * parameters, and InvalidScorerOptionError for an option that there is not.
 */
export async function loadComputeScore(
  spec: string | RewardSpec,
  options: LoadOptions = {},
): Promise<ComputeScore> {
  const { computeScore } = await loadScorer(spec, options);
  return computeScore;
}

/**
 * Loads a function of any kind unchanged, such as one that makes a tokenizer. Rejects as
 * loadComputeScore, but accepts any parameters.
 */
export async function loadFunction(
  spec: string | RewardSpec,
  options: LoadOptions = {},
): Promise<(...args: never[]) => unknown> {
  const { path, name } = rewardSpecOf(spec);
  const exports = await importModule(path, options);
  const exportName = pickExport(path, exports, name === undefined ? FUNCTION_NAMES : [name]);
  const value = exports[exportName];
  if (!isFunction(value) || isClass(value)) {
    throw new RewardExportTypeError(path, exportName, "function", describeValue(value));
  }
  return value;
}

/**
 * Loads a score function with its hooks. The spec may also name an object or a class with a method
 * computeScore, or computeScores for all answers to a prompt at once, and optionally
 * postProcessScores and log, under these names or verl's. A class is constructed without arguments,
 * once for each thread that loads it; errors of its constructor pass through.
 *
 * Rejects as loadComputeScore, and with RewardHookNameError for a method whose name almost matches
 * one of these.
 */
export async function loadScorer(
  spec: string | RewardSpec,
  options: LoadOptions = {},
): Promise<LoadedScorer> {
  const { path, name, rewardKwargs, areKwargsShared } = rewardSpecOf(spec);
  const exports = await importModule(path, options);
  const wanted = name === undefined ? FUNCTION_NAMES : [name];
  const exportName = pickExport(path, exports, wanted);
  const value = exports[exportName];
  const { signal, onContext, clock } = options;
  const keywords = { keywords: rewardKwargs, areKeywordsShared: areKwargsShared };
  const shared = { ...keywords, signal, onContext, clock };
  if (isFunction(value) && !isClass(value)) {
    return scoring(value, GROUP_NAMES.includes(exportName), {
      name: exportName,
      ...shared,
    });
  }
  const scorer = isClass(value) ? new value() : value;
  const hooks = hooksOf(scorer, path, exportName);
  const { computeScore = hooks.computeScores, computeScores, postProcessScores, log } = hooks;
  if (computeScore === undefined) {
    throw new RewardExportTypeError(path, exportName, "function", describeValue(value));
  }
  if (computeScores !== undefined && hooks.computeScore !== undefined) {
    throw new RewardFunctionSignatureError(
      exportName,
      undefined,
      `it has both ${hooks.computeScore.name}, which scores one sample, and ${computeScores.name}, which scores all answers to a prompt: one of them is never called`,
    );
  }
  const isOfGroups = computeScores !== undefined;
  const ofClass = { name: `${exportName}.${computeScore.name}`, self: scorer, ...shared };
  const method =
    (hook: Hook): UserFunction =>
    (...args) =>
      Reflect.apply(hook.method, scorer, args);
  return {
    ...(await scoring(computeScore.method, isOfGroups, ofClass)),
    ...(postProcessScores === undefined
      ? {}
      : { postProcessScores: method(postProcessScores) as Scorer["postProcessScores"] & {} }),
    ...(log === undefined ? {} : { log: method(log) as Scorer["log"] & {} }),
  };
}

/**
 * Wraps the called function.
 *
 * @param isOfGroups whether its name says that it takes groups; its parameters may say so, too
 */
async function scoring(
  callable: UserFunction,
  isOfGroups: boolean,
  options: CallableOptions,
): Promise<LoadedScorer> {
  const isAsync = isAsyncFunction(callable);
  const called: CalledFunction = isOfGroups
    ? { takesLists: true, call: await calledGroupFunction(callable, options) }
    : await calledFunction(callable, options);
  if (!called.takesLists) return { computeScore: called.call, isAsync };
  const { computeScore } = new GroupScorer(called.call);
  return { computeScore, computeScores: called.call, isAsync };
}

function isAsyncFunction(value: unknown): boolean {
  return Object.prototype.toString.call(value) === "[object AsyncFunction]";
}

/**
 * Loads the reward manager class that the spec names. Without a name it takes the default export,
 * else the only class among the exports. A registry checks for runSingle when it creates an
 * instance. Rejects as loadComputeScore does, and with RewardHookNameError.
 */
export async function loadRewardManagerClass(
  spec: string | RewardSpec,
  options: LoadOptions = {},
): Promise<RewardManagerClass> {
  const { path, name } = rewardSpecOf(spec);
  const exports = await importModule(path, options);
  const classes = exportNames(exports).filter((key) => isClass(exports[key]));
  const wanted =
    name !== undefined ? [name] : classes.length === 1 ? ["default", ...classes] : ["default"];
  const exportName = pickExport(path, exports, wanted);
  const value = exports[exportName];
  if (!isClass(value))
    throw new RewardExportTypeError(path, exportName, "class", describeValue(value));
  const managerClass = value as RewardManagerClass;
  const absent = (["initClass", "assembleRmScores"] as const).filter(
    (hook) => !(hook in managerClass),
  );
  refuseAlike(methodNames(managerClass), absent, path, exportName);
  const lacksRun = !("runSingle" in managerClass.prototype);
  if (lacksRun) refuseAlike(methodNames(managerClass.prototype), ["runSingle"], path, exportName);
  return managerClass;
}

async function importModule(path: string, options: LoadOptions): Promise<Record<string, unknown>> {
  checkOptionNames(options, optionNames);
  const { baseDirectory = process.cwd(), locate } = options;
  const url = resolveRewardModule(path, baseDirectory, locate);
  try {
    const exports: Record<string, unknown> = await import(url);
    return exports;
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
