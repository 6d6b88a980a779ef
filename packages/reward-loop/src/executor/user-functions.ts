/**
 * Loads everything that scores a sample (manager, score function, tokenizer) in the thread where it
 * runs, with a clock around each of the user's functions. User code is loaded and called here and
 * nowhere else.
 */

import {
  copyData,
  createDefaultComputeScore,
  createDefaultRegistry,
  GroupScorer,
  loadFunction,
  loadRewardManagerClass,
  loadScorer,
} from "@rayling/reward-manager-registry";
import type {
  ComputeScore,
  RewardManager,
  RewardManagerClass,
  RewardModelAccess,
  RewardResult,
  RewardSample,
  RewardSpec,
  ScoreCall,
  ScoredBatch,
  Scorer,
  Tokenizer,
} from "@rayling/reward-manager-registry";
import { fieldOf } from "@rayling/reward-manager-registry/values";
import { rememberToken } from "../client/router-tokens.ts";
import { RewardLoopOptionError } from "../errors.ts";
import { moduleHere } from "../settings/sent-modules.ts";
import type { DiscriminativeUse, ModelSettings, PipelineSettings } from "../settings/settings.ts";
import { runGroup } from "../sample/group-sample.ts";
import type { GroupSample } from "../sample/group-sample.ts";
import type { RunTracker } from "./run-tracker.ts";

/** Puts functions of the user on the clock, and knows the signal of the run that calls one. */
export type UserCode = Pick<RunTracker, "timed" | "clock" | "signal" | "current">;

/** The reward manager with the functions of the user, loaded. */
export interface UserFunctions
  extends
    Omit<RewardManager, "begin">,
    Pick<Scorer, "postProcessScores" | "log">,
    Pick<RewardManagerClass, "assembleRmScores"> {
  /**
   * Whether several samples may be at work at once: known for async functions, learned from the
   * first promise of others.
   */
  readonly overlaps: boolean;
  /** `runSingle` for a call that hears of its end. Absent for a manager of the user's. */
  readonly begin?: (call: ScoreCall) => void;
  /** Present for a function that scores all answers to a prompt at once. */
  readonly runGroup?: (group: GroupSample) => Promise<RewardResult>;
}

/** Rejects as the loaders of reward-manager-registry do. */
export async function loadFunctions(
  settings: PipelineSettings,
  tracker: UserCode,
): Promise<UserFunctions> {
  rememberTokens(settings);
  const { discriminative, rewardRouterAddress, rewardRouterToken } = settings;
  if (discriminative !== undefined) return discriminativeFunctions(discriminative, tracker);
  let overlaps = false;
  const onThenable = (): void => void (overlaps = true);
  const { scorer, isAsync } = await scorerOf(settings, tracker, onThenable);
  if (isAsync) overlaps = true;
  const { computeScore, computeScores, postProcessScores, log } = scorer;
  const groups = computeScores && new GroupScorer(computeScores);
  const forGroups = {
    ...(postProcessScores === undefined
      ? {}
      : { postProcessScores: tracker.timed(postProcessScores) }),
    ...(log === undefined ? {} : { log: tracker.timed(log) }),
  };
  const managerClass = await managerOf(settings);
  const registry = createDefaultRegistry();
  const manager = await registry.create(managerClass, {
    computeScore: groups?.computeScore ?? computeScore,
    tokenizer: await loadTokenizer(settings, tracker),
    rewardRouterAddress,
    rewardRouterToken,
    rewardModelTokenizer: await rewardModelTokenizerOf(settings.rewardModel),
    rewardModels: await rewardModelsOf(settings),
    options: settings.managerOptions,
  });
  const isOwn = typeof settings.manager !== "string";
  const runSingle = isOwn
    ? runSingleOfOwn(manager, tracker)
    : (sample: RewardSample) => manager.runSingle(sample);
  const assembles =
    typeof managerClass === "string" || managerClass.assembleRmScores === undefined
      ? {}
      : { assembleRmScores: tracker.timed(assembling(managerClass)) };
  return {
    get overlaps() {
      return isOwn || overlaps;
    },
    runSingle,
    ...(isOwn || manager.begin === undefined ? {} : { begin: manager.begin.bind(manager) }),
    ...(groups === undefined
      ? {}
      : { runGroup: (group: GroupSample) => runGroup(groups, group, runSingle) }),
    ...forGroups,
    ...assembles,
  };
}

/** Each token goes to its own router only. */
function rememberTokens(settings: PipelineSettings): void {
  const { rewardRouterAddress, rewardRouterToken, rewardModels = {} } = settings;
  const router = { address: rewardRouterAddress, token: rewardRouterToken };
  for (const { address, token } of [router, ...Object.values(rewardModels)]) {
    if (address !== undefined && token !== undefined) rememberToken(address, token);
  }
}

/** @param onThenable called when its score function has returned a promise */
async function scorerOf(
  settings: PipelineSettings,
  tracker: UserCode,
  onThenable: () => void,
): Promise<{ readonly scorer: Scorer; readonly isAsync: boolean }> {
  const { reward, baseDirectory } = settings;
  const signal = (): AbortSignal => tracker.signal;
  if (reward === undefined) {
    const computeScore = tracker.timed(withSignal(settings, signal), onThenable);
    return { scorer: { computeScore }, isAsync: false };
  }
  const onContext = (): void => {
    tracker.current?.saw({ readsContext: true });
  };
  const clock = tracker.clock(onThenable);
  const scorer = await loadScorer(reward, {
    baseDirectory,
    locate: moduleHere,
    signal,
    onContext,
    clock,
  });
  return { scorer, isAsync: scorer.isAsync };
}

/**
 * A custom manager may write into its sample, which shares parts with others that came with it.
 */
function runSingleOfOwn(manager: RewardManager, tracker: UserCode): RewardManager["runSingle"] {
  const own = tracker.timed<Parameters<RewardManager["runSingle"]>, unknown>((sample) =>
    manager.runSingle(copyData(sample)),
  );
  return async (sample) => (await own(sample)) as RewardResult;
}

function assembling(managerClass: RewardManagerClass): (batch: ScoredBatch) => PlacedScores {
  return (batch) => managerClass.assembleRmScores?.(batch) ?? [];
}

type PlacedScores = ReturnType<NonNullable<RewardManagerClass["assembleRmScores"]>>;

/** The reward model scores by itself; its requests are on the clock as a function's. */
async function discriminativeFunctions(
  use: DiscriminativeUse,
  tracker: UserCode,
): Promise<UserFunctions> {
  const [{ DiscriminativeReward }, { createTokenizer }] = await Promise.all([
    import("../reward-model/discriminative.ts"),
    import("../tokenizer/index.ts"),
  ]);
  const { tokenizer, policyTokenizer, ...settings } = use;
  const reward = new DiscriminativeReward(settings, {
    tokenizer: await createTokenizer({ path: tokenizer }),
    policyTokenizer:
      policyTokenizer === undefined ? undefined : await createTokenizer({ path: policyTokenizer }),
    signal: () => tracker.signal,
  });
  const runSingle = tracker.timed((sample: RewardSample) => reward.runSingle(sample));
  return { overlaps: true, runSingle: async (sample) => runSingle(sample) };
}

/** verl's scorers by data source; they are called with what they were made for. */
function withSignal({ defaultScore }: PipelineSettings, signal: () => AbortSignal): ComputeScore {
  const computeScore = createDefaultComputeScore(defaultScore);
  return (input) => computeScore({ ...input, signal: signal() });
}

/** Its name, or the class that the user's module exports. */
async function managerOf({
  manager,
  baseDirectory,
}: PipelineSettings): Promise<string | RewardManagerClass> {
  if (typeof manager === "string") return manager;
  return loadRewardManagerClass(manager, { baseDirectory, locate: moduleHere });
}

async function loadTokenizer(
  { tokenizer: spec, baseDirectory }: PipelineSettings,
  tracker: UserCode,
): Promise<Tokenizer | undefined> {
  if (spec === undefined) return undefined;
  const { path, name, rewardKwargs = {} }: RewardSpec = spec;
  const factory = await loadFunction({ path, name }, { baseDirectory, locate: moduleHere });
  const tokenizer: unknown = await Reflect.apply(factory, undefined, [rewardKwargs]);
  if (!isTokenizer(tokenizer)) {
    throw new RewardLoopOptionError(
      "tokenizer",
      `a function that returns { decode(ids, options) }`,
      `${path}:${String(name)}`,
    );
  }
  const decode = tracker.timed((...args: Parameters<Tokenizer["decode"]>) =>
    tokenizer.decode(...args),
  );
  return { decode };
}

function isTokenizer(value: unknown): value is Tokenizer {
  return typeof fieldOf(value, "decode") === "function";
}

/** Called by the user's code only, and so on its clock. */
async function rewardModelTokenizerOf(
  model: Pick<ModelSettings, "tokenizer"> | undefined,
): Promise<Tokenizer | undefined> {
  if (model?.tokenizer === undefined) return undefined;
  const { createTokenizer } = await import("../tokenizer/index.ts");
  return createTokenizer({ path: model.tokenizer });
}

/**
 * Returns the models in the form that score functions get. Frozen, because all samples share them.
 */
async function rewardModelsOf({
  rewardModels,
}: PipelineSettings): Promise<Readonly<Record<string, RewardModelAccess>> | undefined> {
  if (rewardModels === undefined) return undefined;
  const named = Object.entries(rewardModels).map(async ([name, settings]) => {
    const { engine, model, address: routerAddress, token: routerToken } = settings;
    const tokenizer = await rewardModelTokenizerOf(settings);
    const access: RewardModelAccess = { engine, model, routerAddress, routerToken, tokenizer };
    return [name, Object.freeze(access)] as const;
  });
  return Object.freeze(Object.fromEntries(await Promise.all(named)));
}
