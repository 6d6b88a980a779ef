/**
 * A main and a cheaper judge: when the cap on spending is reached, samples that the main judge has
 * not begun go to the cheaper one. Every score says which of the two gave it, "main" or "cheaper".
 * Scores that the main judge gave before still count.
 */

import type { RewardSample, ScoredBatch, ScoreLogEntry } from "@rayling/reward-manager-registry";
import { itemAt } from "@rayling/reward-manager-registry/values";
import type { GroupScoreList } from "../executor/score-work.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import { forPart } from "../pipeline/reward-source.ts";
import type {
  AskedFor,
  GroupScores,
  PreparedReload,
  RewardSource,
} from "../pipeline/reward-source.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { Budget } from "../spend/cost-budget.ts";
import { behind, saidBy } from "./combine.ts";
import { closeAll, onRoomOfAny, prepareAll } from "./parts.ts";

export class DegradingReward implements RewardSource {
  readonly #main: RewardSource;
  readonly #cheaper: RewardSource;
  readonly #budget: Budget;

  /**
   * Closes both when it is closed.
   *
   * @param budget of the first: when it is empty the other one takes over
   */
  constructor(main: RewardSource, cheaper: RewardSource, budget: Budget) {
    this.#main = main;
    this.#cheaper = cheaper;
    this.#budget = budget;
  }

  /** The version of the judge that is asked now. */
  get version(): string {
    return this.#current.version;
  }

  get workerNames(): string[] {
    return [...this.#main.workerNames, ...this.#cheaper.workerNames];
  }

  /** A group is scored as one where one of the two takes it so. */
  get traits(): ExecutorTraits {
    const { traits } = this.#main;
    return { ...traits, scoresGroups: traits.scoresGroups || this.#cheaper.traits.scoresGroups };
  }

  get slots(): number {
    return this.#current.slots;
  }

  hasRoomFor(lane: string): boolean {
    return this.#current.hasRoomFor(lane);
  }

  isCongestedFor(lane: string): boolean {
    return this.#current.isCongestedFor(lane);
  }

  onRoom(listener: () => void): () => void {
    return onRoomOfAny([this.#main, this.#cheaper], listener);
  }

  async score(sample: RewardSample, lane: string, asked?: AskedFor): Promise<SampleOutcome> {
    const part = forPart(asked);
    const outcome = await this.#main.score(sample, lane, part);
    if (!isUnpaid(outcome)) return saidBy("main", outcome);
    return saidBy("cheaper", behind(outcome, await this.#cheaper.score(sample, lane, part)));
  }

  async scoreGroup(
    samples: readonly RewardSample[],
    lane: string,
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]> {
    const part = forPart(asked);
    const outcomes = [...(await this.#main.scoreGroup(samples, lane, part))];
    const unpaid = [...outcomes.keys()].filter((at) => isUnpaid(itemAt(outcomes, at)));
    for (const [at, outcome] of outcomes.entries()) outcomes[at] = saidBy("main", outcome);
    if (unpaid.length === 0) return outcomes;
    const given = unpaid.map((at) => itemAt(samples, at));
    const cheaper = await this.#cheaper.scoreGroup(given, lane, part);
    for (const [place, at] of unpaid.entries()) {
      const first = itemAt(outcomes, at);
      outcomes[at] = saidBy("cheaper", behind(first, itemAt(cheaper, place)));
    }
    return outcomes;
  }

  giveUp(signal: AbortSignal): void {
    this.#main.giveUp(signal);
    this.#cheaper.giveUp(signal);
  }

  postProcessScores(scores: GroupScoreList): Promise<GroupScores> {
    return this.#main.postProcessScores(scores);
  }

  assembleRmScores(batch: ScoredBatch): Promise<SampleOutcome | undefined> {
    return this.#main.assembleRmScores(batch);
  }

  log(entry: ScoreLogEntry): Promise<SampleOutcome> {
    return this.#main.log(entry);
  }

  prepareReload(): Promise<PreparedReload> {
    return prepareAll([this.#main, this.#cheaper]);
  }

  close(): Promise<void> {
    return closeAll([this.#main, this.#cheaper]);
  }

  get #current(): RewardSource {
    return this.#budget.isEmpty ? this.#cheaper : this.#main;
  }
}

/** Whether the outcome was not begun because the cap is reached. */
function isUnpaid(outcome: SampleOutcome): boolean {
  return !outcome.valid && outcome.error.code === "SPEND_CAP";
}
