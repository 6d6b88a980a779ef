/**
 * verl's RewardLoopManager: rollouts in, rewards out. Lives in the caller's thread and owns the
 * source of its scores. It splits batches and assembles them again; its source decides how one
 * sample is scored, and by how many functions.
 */

import type { DataProto } from "@rayling/data-proto";
import type { RewardSample, ScoreLogEntry } from "@rayling/reward-manager-registry";
import { isDashboardServed } from "@rayling/core/dashboard";
import { warn } from "@rayling/core/terminal";
import { itemAt } from "@rayling/reward-manager-registry/values";
import { assembleRewards } from "../batch/reward-columns.ts";
import { responseShape, samplesOf } from "../batch/batch-samples.ts";
import type { ResponseShape } from "../batch/batch-samples.ts";
import type { RewardLoopOptions } from "../compose/plan/loop-options.ts";
import { openSource } from "../compose/open-plan.ts";
import type { SourceContext } from "../compose/open-plan.ts";
import { versionsOf } from "../compose/plan/plan-versions.ts";
import { readLogs, readPlan } from "../compose/plan/read-plan.ts";
import type { LogPlan } from "../compose/plan/read-plan.ts";
import { ReplayedReward } from "../compose/replayed-reward.ts";
import { withRewardModels } from "../compose/plan/reward-plan.ts";
import type { RewardPlan } from "../compose/plan/reward-plan.ts";
import { RewardLoopClosedError } from "../errors.ts";
import type { GroupScoreList } from "../executor/score-work.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type { SampleOutcome, ScoredSample } from "../outcome.ts";
import { roundOptions, scoreOptions } from "../options/defaults/calls.ts";
import type { TableOf } from "../options/defaults/calls.ts";
import { onFailureOptions } from "../options/defaults/policies.ts";
import { checkOptions, withDefaults } from "../options/read.ts";
import { OutcomeRecorder } from "../record/outcome-recorder.ts";
import { RecordedCosts } from "../record/recorded-costs.ts";
import { RecordedOutcomes } from "../record/replayed-outcomes.ts";
import { rewardModelsOf } from "../reward-model/loop-models.ts";
import type { RewardModelManager } from "../reward-model/reward-model-manager.ts";
import { RewardModels } from "../reward-model/reward-models.ts";
import type { SpendState } from "../spend/cost-budget.ts";
import { checkFailures, putRight, withFallback, withGroupMean } from "./failures.ts";
import { LoopScores } from "./loop-scores.ts";
import type { ScoringParts } from "./loop-scores.ts";
import { showLoop } from "./loop-panel.ts";
import { LoopTally } from "./loop-tally.ts";
import { LoopUses } from "./loop-uses.ts";
import { assembledScores } from "./assembled-scores.ts";
import type { GroupScores, RewardSource } from "../pipeline/reward-source.ts";
import type { RoundOptions, ScoreRound } from "./score-round.ts";
import { WatchedSource } from "./watched-source.ts";
import { checkStream } from "./stream/check-stream.ts";
import { scoreStream } from "./stream/score-stream.ts";
import type { ScoreStreamOptions, StreamScorer } from "./stream/score-stream.ts";
import type { EndpointState } from "../pipeline/shared-limiter.ts";

/** How a batch or a sample is scored. */
export interface ScoreOptions {
  /**
   * The lane in which it shares workers and endpoint: "training" (default), "validation", or any
   * other.
   */
  readonly lane?: string | undefined;
  /**
   * Gives the samples up: the promise rejects with the signal's reason at once, calls under way are
   * aborted by the signal that their function has, and what they have used is paid.
   */
  readonly signal?: AbortSignal | undefined;
}

const inTraining: ScoreOptions = {};

/** verl's `RewardLoopManager`: scores batches, samples and streams with parallel workers. */
export class RewardLoopManager implements AsyncDisposable {
  readonly #source: RewardSource;
  readonly #scores: LoopScores;
  readonly #uses: LoopUses;
  readonly #recorder: OutcomeRecorder | undefined;
  /** Reward models by name, with that of `rewardModel` as "default"; closed with the loop. */
  readonly rewardModels: RewardModels;
  /** The last reload; reloads run one at a time. */
  #reloading: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  private constructor(parts: ScoringParts, uses: LoopUses) {
    this.#source = parts.source;
    this.#recorder = parts.recorder;
    this.#scores = new LoopScores(parts);
    this.#uses = uses;
    this.rewardModels = parts.models;
  }

  /**
   * Resolves when every worker has loaded the user's modules. Rejects with RewardLoopOptionError,
   * ExecutorStartError, RewardLimiterConflictError, RewardCacheError, JsonlError or
   * RewardLogError (of `record`, `replay` and `spentBefore`), RewardLogBusyError,
   * RewardLogStaleError (of `resume`), or why a module cannot be loaded (errors of
   * reward-manager-registry); no actor is left then.
   */
  static async create(options: RewardLoopOptions = {}): Promise<RewardLoopManager> {
    const plan = readPlan(options);
    const logs = readLogs(options);
    const models = rewardModelsOf(options);
    withRewardModels(plan, models);
    // A replayed log may answer everything; then no model is needed.
    const isAsked = logs.replay === undefined || logs.replay.missing === "ask";
    const running = await RewardModels.start(isAsked ? models : []);
    try {
      const known = isAsked ? withRewardModels(plan, models, running.routers) : plan;
      const { parts, uses } = await openParts(known, logs, options, running);
      const loop = new RewardLoopManager(parts, uses);
      parts.watched?.onClose(showLoop(loop, parts.watched.tally, logs.record));
      return loop;
    } catch (error) {
      await running.close();
      throw error;
    }
  }

  /** The reward model by the name "default", or the only one. */
  get rewardModel(): RewardModelManager | undefined {
    return this.rewardModels.default;
  }

  /**
   * Samples that may be scored at a time: workers x concurrency; with several rewards the least of
   * theirs, with a cascade the sum.
   */
  get slots(): number {
    return this.#source.slots;
  }

  /** Names for `ray.getActor`, in order. Others after a reload. */
  get workerNames(): string[] {
    return [...this.#source.workerNames];
  }

  /**
   * The version of the reward functions that are called now, by their modules' texts and settings.
   * Every outcome has the version that gave it.
   */
  get version(): string {
    return this.#source.version;
  }

  /**
   * Loads the present modules of the reward functions, in new threads: samples submitted later are
   * scored by them, pending ones by the old modules. Resolves to the new version. Rejects with the
   * reason if a module cannot be loaded, as `create`; the old ones stay then.
   */
  reload(): Promise<string> {
    const reloading = this.#reloading.then(async () => {
      if (this.#closing !== undefined) throw new RewardLoopClosedError();
      const prepared = await this.#source.prepareReload();
      if (this.#closing !== undefined) {
        await prepared.discard();
        throw new RewardLoopClosedError();
      }
      prepared.commit();
      return this.version;
    });
    this.#reloading = reloading.catch(() => undefined);
    return reloading;
  }

  /**
   * Scores a batch (verl `compute_rm_score`) and returns new columns for it: batch.rmScores
   * (float32 [rows, response length], the score at the last valid token) and batch.rewardValid
   * (bool [rows]); nonTensorBatch.rewardError (null or the reason why there is no score) and one
   * column per key of extra info (`reward_extra_{key}` where the batch or the loop has a column of
   * that name), named in metaInfo.rewardExtraKeys.
   * A manager class of yours with `assembleRmScores` decides itself where the scores stand. A
   * function that scores groups (`computeScores`) is called once for all rows of a `uid`, or,
   * without such a column, for all; so is postProcessScores with their scores.
   * Rejects with RewardLoopOptionError, InvalidBatchError, RewardFailuresError
   * (onFailure.failAbove), RewardAssemblyError, ExecutorStartError, RewardLoopWorkerLostError,
   * RewardLoopClosedError, and with EndpointError where the reward model does not wake up or go to
   * sleep; with the reason of `signal` as soon as that is aborted.
   */
  async computeRmScore(data: DataProto, options: ScoreOptions = {}): Promise<DataProto> {
    checkOptions(scoreOptions satisfies TableOf<ScoreOptions>, options);
    if (this.#closing !== undefined) throw new RewardLoopClosedError();
    const { lane = "training", signal } = options;
    const shape = responseShape(data);
    const samples = samplesOf(data);
    const scoring = (): Promise<readonly SampleOutcome[]> =>
      this.#scores.awake(async () => {
        const round = this.#scores.round(samples.length, { lane }, { signal });
        const scored = this.traits.scoresGroups
          ? await byGroup(samples, (rows) =>
              round.scoreGroup(rows.map((row) => itemAt(samples, row))),
            )
          : await Promise.all(samples.map((sample) => round.score(sample)));
        if (!this.putsGroupsRight) return scored;
        return byGroup(samples, async (rows, group) => {
          const own = rows.map((row) => itemAt(scored, row));
          // Without a `uid` they are no group that a mean could be of.
          return group !== undefined || this.traits.postProcesses ? this.putRight(own) : own;
        });
      });
    const outcomes = await (signal ? this.#scores.until(signal, scoring) : scoring());
    checkFailures(outcomes, this.#scores.onFailure);
    return this.assembleRewards(shape, outcomes);
  }

  /**
   * Scores one sample, by the worker with the least load, with the reward model awake. Rejects as
   * computeRmScore, except for errors of a batch; `onFailure` applies with `fallback` only.
   */
  computeScore(sample: RewardSample, options: ScoreOptions = inTraining): Promise<SampleOutcome> {
    try {
      // Without options, as most samples come, there is nothing to check.
      if (options !== inTraining) checkOptions(scoreOptions, options);
    } catch (error) {
      return Promise.reject(error);
    }
    const { lane = "training", signal } = options;
    this.#scores.expect(1);
    if (signal === undefined) return this.#scores.score(sample, lane);
    return this.#scores.until(signal, () => this.#scores.score(sample, lane, { signal }));
  }

  /**
   * Opens a round of `rows` samples that come one by one, to which the batch policies of
   * `onFailure` apply. Throws RewardLoopOptionError.
   */
  round(
    rows: number,
    options: Pick<ScoreOptions, "lane"> & Pick<RoundOptions, "earlier"> = {},
  ): ScoreRound {
    checkOptions(roundOptions satisfies TableOf<RoundOptions>, options);
    const { lane = "training", earlier } = options;
    return this.#scores.round(rows, { lane, earlier });
  }

  /**
   * Returns the columns of computeRmScore for existing outcomes. Rejects with RewardAssemblyError,
   * and as computeScore. @param shape of their rows
   */
  async assembleRewards(
    shape: ResponseShape,
    outcomes: readonly SampleOutcome[],
  ): Promise<DataProto> {
    return assembleRewards(shape, outcomes, await assembledScores(this.#source, shape, outcomes));
  }

  /**
   * The cost of all scores so far, with the option `spend`, including earlier costs with
   * `spentBefore`.
   */
  get spent(): number {
    return this.#uses.spent;
  }

  /** How far each cap is: of the loop ("") and of its parts, by their names. */
  get spending(): SpendState[] {
    return this.#uses.spending;
  }

  /**
   * The present use of each endpoint's limits, by all loops of the session; nothing for an endpoint
   * without limits. Rejects if a limiter cannot answer: it is being restarted
   * (ActorUnavailableError), or gone.
   */
  endpoints(): Promise<EndpointState[]> {
    return this.#uses.endpoints();
  }

  /**
   * The number of samples that each stage of a cascade, or each judge before and behind a cap, has
   * given a score, by its name (in a part: "correct/judge").
   */
  get answeredBy(): Record<string, number> {
    return this.#scores.answeredBy;
  }

  /** Which further functions the user has: postProcessScores, log. */
  get traits(): ExecutorTraits {
    return this.#source.traits;
  }

  /**
   * Returns a group's scores after the user's postProcessScores, or unchanged if there is none.
   * Rejects as computeScore.
   *
   * @param scores of a group's samples, by their order in the batch; null: it is invalid
   */
  postProcessScores(scores: GroupScoreList): Promise<GroupScores> {
    return this.#source.postProcessScores(scores);
  }

  /** Whether `putRight` may change a group. */
  get putsGroupsRight(): boolean {
    return this.traits.postProcesses || this.#scores.onFailure.fallback === "groupMean";
  }

  /**
   * Post-processes all outcomes of one prompt: by the user's postProcessScores, and by
   * `onFailure.fallback` where it leaves one without a score. Rejects as computeScore.
   */
  async putRight(outcomes: readonly SampleOutcome[]): Promise<readonly SampleOutcome[]> {
    const { onFailure } = this.#scores;
    if (!this.traits.postProcesses) return withGroupMean(outcomes, onFailure);
    const scores = outcomes.map((one) => (one.valid ? one.rewardScore : null));
    const after = putRight(outcomes, await this.postProcessScores(scores));
    const filled = after.map((one) => withFallback(one, onFailure));
    return withGroupMean(filled, onFailure);
  }

  /** Tells the user's log, if there is one. Rejects as computeScore. */
  log(entry: ScoreLogEntry): Promise<SampleOutcome> {
    return this.#source.log(entry);
  }

  /**
   * Yields `{ index, sample, outcome }` as samples finish; at most workers x concurrency are in
   * progress, and the input is read no faster: beside other lanes or streams as many more samples
   * stand in line, so that its lane gets its share. Each sample has exactly one outcome, also when
   * workers or executors die meanwhile. `onFailure` applies with `fallback` only; the mean of a
   * group, and postProcessScores, need `groups`. Throws RewardLoopOptionError at once; its values
   * reject as computeScore, and with RewardGroupError. A stream that ends early (its `signal`, an
   * error, a reader that leaves) gives up what is in progress. The reward model is awake until the
   * stream ends or is left.
   */
  scoreStream<Sample extends RewardSample>(
    samples: Iterable<Sample> | AsyncIterable<Sample>,
    options: ScoreStreamOptions<Sample> = {},
  ): AsyncGenerator<ScoredSample<Sample>, void, undefined> {
    checkStream(samples, options);
    const scorer: StreamScorer = {
      room: this.#source,
      score: (sample, lane, asked) => this.#scores.score(sample, lane, asked),
      scoresGroups: this.traits.scoresGroups,
      scoreGroup: (group, lane, asked) => this.#scores.scoreGroup(group, lane, asked),
      giveUp: (signal) => this.#scores.giveUp(signal),
      putRight: this.putsGroupsRight ? (outcomes) => this.putRight(outcomes) : undefined,
      watched: {
        spent: () => this.spent,
        spending: () => this.spending,
        ...(!this.#uses.areLimited ? {} : { endpoints: () => this.endpoints() }),
        ...(this.rewardModels.names.length === 0
          ? {}
          : { models: () => this.rewardModels.states() }),
      },
    };
    this.#scores.expect(options.total ?? (Array.isArray(samples) ? samples.length : undefined));
    const stream = scoreStream(samples, scorer, options);
    return this.rewardModels.awakeFor(stream);
  }

  /**
   * Ends all workers and executors; what is pending rejects with RewardLoopClosedError.
   * Idempotent. Rejects with JsonlError when all has ended where the reward log of `record` does
   * not have what was written (JSONL_CHANGED).
   */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      await this.#source.close();
      this.#scores.failRounds(new RewardLoopClosedError());
      await this.#reloading;
      try {
        await this.#recorder?.close();
      } finally {
        await this.rewardModels.close();
      }
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Opens the source of a loop's outcomes, and its logs: all of them or none. */
async function openParts(
  plan: RewardPlan,
  { record, recordTexts, resume, replay, spentBefore: spentLog }: LogPlan,
  options: RewardLoopOptions,
  models: RewardModels,
): Promise<{ readonly parts: ScoringParts; readonly uses: LoopUses }> {
  const onFailure = withDefaults(onFailureOptions, options.onFailure ?? {});
  const recorded = replay && (await RecordedOutcomes.read(replay.log));
  const spentBefore = await RecordedCosts.read(spentLog);
  const context: SourceContext = { budgets: [], limiters: [], warn: warnOfSpending, spentBefore };
  const resumed = resume && { ...resume, versions: (await versionsOf(plan)).versions };
  const recorder =
    record === undefined
      ? undefined
      : await OutcomeRecorder.open(record, { resumed, texts: recordTexts });
  const replayed = async (log: RecordedOutcomes): Promise<ReplayedReward> => {
    const { reward, rewards, cascade } = options;
    const asks = replay?.missing === "ask";
    const isOpen = asks || [reward, rewards, cascade].some((one) => one !== undefined);
    return new ReplayedReward(log, isOpen ? await openSource(plan, context) : undefined, asks);
  };
  try {
    const opened =
      recorded === undefined ? await openSource(plan, context) : await replayed(recorded);
    const watched = isDashboardServed() ? new WatchedSource(opened, new LoopTally()) : undefined;
    const parts = { source: watched ?? opened, onFailure, models, recorder, watched };
    return { parts, uses: new LoopUses(context.budgets, context.limiters) };
  } catch (error) {
    await recorder?.close();
    throw error;
  }
}

/**
 * Returns the outcomes of a batch that are made group by group. Rows of one `uid` are answers to
 * one prompt; without such a column all of them are.
 */
async function byGroup(
  samples: readonly RewardSample[],
  outcomesOf: (
    rows: readonly number[],
    group: string | undefined,
  ) => Promise<readonly SampleOutcome[]>,
): Promise<SampleOutcome[]> {
  const groups = Map.groupBy(samples.keys(), (row) => samples[row]?.context?.group);
  const outcomes = Array<SampleOutcome>(samples.length);
  await Promise.all(
    Array.from(groups, async ([group, rows]) => {
      const own = await outcomesOf(rows, group);
      for (const [at, row] of rows.entries()) outcomes[row] = itemAt(own, at);
    }),
  );
  return outcomes;
}

function warnOfSpending({ name, spent, cap = 0, state }: SpendState): void {
  const whose = name === "" ? "scores" : `scores of ${name}`;
  const amount = `${spent.toPrecision(4)} of ${cap}`;
  const message =
    state === "reached"
      ? `all that may be spent on ${whose} is spent: ${amount}`
      : `${amount} is spent on ${whose}`;
  warn(message);
}
