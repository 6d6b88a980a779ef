/** Options of a reward function, and of a loop of one or several: a table for each. */

import { availableParallelism } from "node:os";
import type { ResourceLimits } from "@rayling/core";
import type { RewardModelUse } from "./reward-model.ts";
import type {
  HedgeTable,
  LimitsTable,
  OnFailureTable,
  PricesTable,
  RetryTable,
} from "./policies.ts";
import {
  hedgeOptions,
  limitsOptions,
  onFailureOptions,
  pricesOptions,
  budgetOptions,
  retryOptions,
} from "./policies.ts";
import {
  byName,
  choice,
  choiceOr,
  flag,
  inherited,
  judge,
  list,
  module,
  number,
  option,
  otherwise,
  own,
  parts,
  section,
  switched,
  text,
  url,
  whole,
} from "../table.ts";
import type { OptionTable } from "../table.ts";
import { timeLimitOptions } from "./time-limits.ts";

/** verl's own section says it in files. */
const elsewhere = { key: null };

export const spendOptions = {
  ...budgetOptions,
  /**
   * A cheaper function that takes over when the cap is reached; without one no further sample is
   * begun. It costs nothing unless it has prices of its own. With `cap`. Default: stop.
   */
  whenReached: option(judge<PricesTable>(partTable, pricesOptions), "stop", {
    needs: { names: ["cap"], why: "which has to be reached" },
  }),
};
export interface SpendTable extends Readonly<typeof spendOptions> {}

/** verl `reward.sandbox_fusion`. */
export const sandboxFusionOptions = {
  /** The `run_code` of a service that runs programs, for the scorers by data source. */
  url: option(url, undefined, {
    isRequired: true,
  }),
  /**
   * Concurrent programs, for all loops that name the service; a limit in `limits` holds, too. With
   * `url`. Default: 64.
   */
  maxConcurrent: option(whole(1), 64, {
    needs: { names: ["url"], why: "of a service that it is for" },
  }),
  /** The memory that each program may take. With `url`. Default: 1024. */
  memoryLimitMb: option(whole(1), 1024, {
    needs: { names: ["url"], why: "of a service that it is for" },
  }),
};
export interface SandboxFusionTable extends Readonly<typeof sandboxFusionOptions> {}

/** verl `reward.compute_score_kwargs`. */
export const computeScoreOptions = {
  /**
   * Whether a correct answer counts in a form that verl's scorers do not accept. Default: false.
   */
  lenient: option(flag, false),
};
export interface ComputeScoreTable extends Readonly<typeof computeScoreOptions> {}

/** Options of the manager rate_limited, which are limits of the loop. */
export const rateLimitedOptions = {
  /** Used by the manager rate_limited: calls at once. Default: 1. */
  maxConcurrent: option(whole(1), 1),
  /** Used by the manager rate_limited: calls a minute. */
  maxRpm: option(number({ above: 0 }), undefined),
  /** Used by the manager rate_limited: tokens a minute. */
  maxTpm: option(number({ above: 0 }), undefined),
  /** Used by the manager rate_limited: tokens of a call. Default: 2000. */
  estimatedTokensPerRequest: option(whole(0), 2000),
};

/** Options that each of several functions may have of its own. */
export const partOptions = {
  /**
   * Reward loop workers; without a number several functions share those of one. Default: one per
   * CPU, at least 2, at most 8.
   */
  workers: option(whole(1), otherwise("one per CPU, at least 2, at most 8", defaultWorkers), {
    key: "num_workers",
  }),
  /** Samples at work per worker; a quarter more stand ready where they are next. Default: 16. */
  concurrency: option(whole(1), inherited(16), elsewhere),
  /**
   * Threads, or processes, of each worker in which score functions run: while one is blocked,
   * another goes on. A number is started at once. Default: one, and a second one as soon as it is
   * needed.
   */
  executors: option(
    whole(1),
    otherwise("one, and a second one as soon as it is needed", () => 2),
  ),
  /**
   * The kind of executor: a thread, or a process for code that may crash (native add-ons,
   * process.abort, unlimited memory use), where a crash costs only its own sample. A process takes
   * longer to start and some 50 MB. Default: threads, and processes with the manager remote.
   */
  executorIsolation: option(
    choice("thread", "process"),
    otherwise("threads, and processes with the manager remote", () => "thread" as const),
  ),
  ...timeLimitOptions,
  /**
   * The score function: PATH[:name], or with rewardKwargs. Default: verl's scorers by data source.
   */
  reward: option(module, otherwise("verl's scorers by data source"), {
    key: "custom_reward_function",
  }),
  /** Limits of the endpoint that the function calls, for all workers of all loops that name it. */
  limits: option(section<LimitsTable>(limitsOptions), undefined),
  /** Whether what failed and may go better later is scored again. Default: false. */
  retry: option(switched<RetryTable>(retryOptions), false),
  /**
   * Whether a call that takes longer than most is begun a second time beside it. Default: false.
   */
  hedge: option(switched<HedgeTable>(hedgeOptions), false),
  /**
   * A file (SQLite) of earlier scores, which are not paid for again; :memory: lasts as long as this
   * loop. Default: none.
   */
  cache: option(text, otherwise("none")),
  /** Whether equal samples that come together are scored once. Default: with a cache. */
  joinSame: option(
    flag,
    otherwise("with a cache", ({ cache }) => cache !== undefined),
  ),
  /** Prices by what scores say they used, and what may be spent. */
  spend: option(section<SpendTable>(spendOptions), undefined),
  /**
   * The service in which programs are tested (verl's data sources codecontests, apps, codeforces,
   * taco). Default: they run on this machine, a few at a time.
   */
  sandboxFusion: option(
    section<SandboxFusionTable>(sandboxFusionOptions),
    otherwise("they run on this machine, a few at a time"),
    elsewhere,
  ),
  /** Settings of verl's scorers by data source, where there is no function. */
  computeScoreKwargs: option(section<ComputeScoreTable>(computeScoreOptions), undefined, elsewhere),
  /** A manager's name, or the path of its class (PATH[:name]). Default: naive. */
  manager: option(module, "naive", elsewhere),
  /** The manager's own settings; others than it reads are refused, but for a class of yours. */
  managerOptions: option(byName(own<unknown>()), {}, elsewhere),
  /**
   * A model's folder, or a module that exports a function that makes the tokenizer (default name
   * createTokenizer); it gets `rewardKwargs`.
   */
  tokenizer: option(module, undefined, elsewhere),
  /**
   * The host:port of a reward model's router, passed to the score function. Default: that of
   * `rewardModel`.
   */
  rewardRouterAddress: option(text, otherwise("that of `rewardModel`"), elsewhere),
  /**
   * The token that the router demands. The score function gets it beside the address, and
   * `@rayling/reward-loop/client` sends it by itself. Default: that of `rewardModel`.
   */
  rewardRouterToken: option(own<string>(), otherwise("that of `rewardModel`"), elsewhere),
  /**
   * Names of the `rewardModels` that the function asks. Where there is no function, the one that
   * scores by itself; with none of them verl's scorers by data source score. Default: all, and
   * without a function the only one, or the one called default.
   */
  askedModels: option(
    list(text),
    otherwise("all, and without a function the only one, or the one called default"),
  ),
  /** Where relative paths start. Default: the current directory. */
  baseDirectory: option(
    text,
    otherwise("the current directory", () => process.cwd()),
    elsewhere,
  ),
  /**
   * Heap limits of an executor: a score function that reaches one is reported, the others go on.
   */
  resourceLimits: option(own<ResourceLimits>(), undefined, elsewhere),
};

export const functionOptions = {
  ...partOptions,
  /** The handling of samples that cannot be scored. */
  onFailure: option(section<OnFailureTable>(onFailureOptions), {}),
  /**
   * A reward model, for score functions of yours that ask it, or without one to score by itself.
   */
  rewardModel: option(own<RewardModelUse>(), undefined, elsewhere),
  /**
   * The name of workers, which get _ and their number behind it. Default: reward_loop_worker, with
   * a suffix where that is taken.
   */
  name: option(text, otherwise("reward_loop_worker, with a suffix where that is taken"), elsewhere),
};

export const stageOptions = {
  ...partOptions,
  /**
   * When the next one is asked. cannotTell (in files cannot_tell): when this one cannot tell, as it
   * returns null or a score of null; invalid: when it has no score for any reason (not allowed for
   * the last one, which has no successor). Default: cannotTell.
   */
  passOn: option(choice("cannotTell", "invalid"), "cannotTell"),
};

export const componentOptions = {
  ...partOptions,
  /**
   * The weight of the score; 0 or below is allowed: a score that is only logged, a penalty.
   * Default: 1.
   */
  weight: option(number(), 1),
  /**
   * The effect of an invalid score on the sample. mask: the sample is invalid, too; leaveOut (in
   * files leave_out): the other scores count, and the sample is invalid if none is left; a number
   * (in the library `{ score }`): that score in its place. Default: mask.
   */
  onInvalid: option(choiceOr("score", "mask", "leaveOut"), "mask"),
  /** In place of its function. */
  cascade: option(parts(stageOptions), undefined),
};

export const resumeOptions = {
  /**
   * The fate of scores that other functions gave, or the same functions with other settings.
   * refuse: the loop does not begin (RewardLogStaleError); rescore: they are scored again; keep:
   * they stay. Default: refuse.
   */
  stale: option(choice("refuse", "rescore", "keep"), "refuse"),
};
export interface ResumeTable extends Readonly<typeof resumeOptions> {}

export const loopOptions = {
  ...functionOptions,
  /** Several reward models by name, beside `rewardModel`, which is called default. */
  rewardModels: option(own<Readonly<Record<string, RewardModelUse>>>(), undefined, elsewhere),
  /**
   * Several rewards of each sample, by name, in place of one function: each has a function or a
   * cascade, a weight, and its own policies where they differ from those beside this; limits belong
   * to each by itself. Their scores are combined.
   */
  rewards: option(parts(componentOptions), undefined),
  /**
   * How the rewards become one score. sum: the sum of weight x score; mean: that divided by the sum
   * of the weights. With `rewards`. Default: sum.
   */
  combine: option(choice("sum", "mean"), "sum", {
    needs: { names: ["rewards"], why: "which it puts together" },
  }),
  /**
   * Functions that are asked in order, by name, in place of one: the next one only when the one
   * before cannot tell.
   */
  cascade: option(parts(stageOptions), undefined),
  /**
   * The reward log of an earlier part of the run: the cost of its scores counts as spent, against
   * the caps; a missing file means that nothing was spent.
   */
  spentBefore: option(text, undefined),
  /** A reward log (JSON Lines) to which every outcome is appended. */
  record: option(text, undefined),
  /**
   * Whether lines of `record` have the prompt, the response and a short ground truth of their
   * samples. Default: true.
   */
  recordTexts: option(flag, true),
  /**
   * Whether the loop continues the log of `record`: samples with a score there are not scored
   * again, failed ones are, each sample in its place, and the logged cost counts as spent. Samples
   * are matched by their content, each as often as the log has it. Default: false.
   */
  resume: option(switched<ResumeTable>(resumeOptions), false),
  /**
   * The reward log of an earlier run that outcomes are taken from, matched by the samples' content.
   * Without a function no worker is started.
   */
  replay: option(own<string | object>(), undefined, elsewhere),
};

export const replayOptions = {
  /** The file. */
  log: option(text, undefined, { isRequired: true }),
  /**
   * The handling of samples that are not in the log. fail: they are invalid (NOT_IN_LOG); ask: the
   * functions are asked. Default: fail.
   */
  missing: option(choice("fail", "ask"), "fail"),
};

function partTable(): OptionTable {
  return partOptions;
}

/** One per CPU, at least 2, at most 8 (verl: 8). */
export function defaultWorkers(): number {
  return Math.min(8, Math.max(2, availableParallelism()));
}
