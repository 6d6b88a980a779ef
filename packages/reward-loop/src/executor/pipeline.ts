/**
 * Loads what scores a sample (manager, score function, tokenizer) in the thread where it runs, each of the user's functions on the
 * clock. Everything that is user code is loaded and called here and nowhere else.
 */

import {
  createDefaultRegistry,
  defaultComputeScore,
  loadComputeScore,
  loadRewardManagerClass,
  withRewardKwargs,
} from "@rayling/reward-manager-registry";
import type {
  ComputeScore,
  RewardManager,
  RewardSpec,
  Tokenizer,
} from "@rayling/reward-manager-registry";
import { RewardLoopOptionError } from "../errors.ts";
import type { PipelineSettings } from "../settings.ts";
import type { RunTracker } from "./run-tracker.ts";

export interface Pipeline extends RewardManager {
  /** Whether several samples may be at work at once: known for async functions, learned from the first promise of others. */
  readonly overlaps: boolean;
}

/** Rejects as the loaders of reward-manager-registry do. */
export async function loadPipeline(
  settings: PipelineSettings,
  tracker: RunTracker,
): Promise<Pipeline> {
  const { reward, baseDirectory } = settings;
  let overlaps = false;
  const onThenable = (): void => void (overlaps = true);
  let computeScore: ComputeScore = defaultComputeScore;
  if (reward !== undefined) {
    const { path, name, rewardKwargs } = reward;
    const loaded = await loadComputeScore({ path, name }, { baseDirectory });
    overlaps = isAsyncFunction(loaded);
    computeScore = withRewardKwargs(loaded, rewardKwargs);
  }
  const manager = await createManager(settings, {
    computeScore: tracker.timed(computeScore, onThenable),
    tokenizer: await loadTokenizer(settings, tracker),
    rewardRouterAddress: settings.rewardRouterAddress,
    options: settings.managerOptions,
  });
  if (typeof settings.manager === "string") {
    return {
      get overlaps() {
        return overlaps;
      },
      runSingle: (sample) => manager.runSingle(sample),
    };
  }
  const runSingle = tracker.timed<Parameters<RewardManager["runSingle"]>, unknown>((sample) =>
    manager.runSingle(sample),
  );
  return { overlaps: true, runSingle: runSingle as RewardManager["runSingle"] };
}

async function createManager(
  { manager, baseDirectory }: PipelineSettings,
  args: Parameters<ReturnType<typeof createDefaultRegistry>["create"]>[1],
): Promise<RewardManager> {
  const registry = createDefaultRegistry();
  const nameOrClass =
    typeof manager === "string"
      ? manager
      : await loadRewardManagerClass(manager, { baseDirectory });
  return registry.create(nameOrClass, args);
}

async function loadTokenizer(
  { tokenizer: spec, baseDirectory }: PipelineSettings,
  tracker: RunTracker,
): Promise<Tokenizer | undefined> {
  if (spec === undefined) return undefined;
  const { path, name, rewardKwargs = {} }: RewardSpec = spec;
  // The loader's checks fit any exported function: this one makes a tokenizer.
  const factory = (await loadComputeScore({ path, name }, { baseDirectory })) as unknown as (
    args: Readonly<Record<string, unknown>>,
  ) => unknown;
  const tokenizer = (await factory(rewardKwargs)) as Partial<Tokenizer> | null | undefined;
  if (typeof tokenizer?.decode !== "function") {
    throw new RewardLoopOptionError(
      "tokenizer",
      `a function that returns { decode(ids, options) }`,
      `${path}:${String(name)}`,
    );
  }
  const decode = tracker.timed((...args: Parameters<Tokenizer["decode"]>) =>
    (tokenizer as Tokenizer).decode(...args),
  );
  return { decode };
}

function isAsyncFunction(value: unknown): boolean {
  return Object.prototype.toString.call(value) === "[object AsyncFunction]";
}
