/**
 * The common part of sources that ask several others; subclasses decide how a sample is scored by
 * them.
 */

import type { RewardSample, ScoreLogEntry } from "@rayling/reward-manager-registry";
import type { GroupScoreList } from "../executor/score-work.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type {
  AskedFor,
  GroupScores,
  PreparedReload,
  RewardSource,
} from "../pipeline/reward-source.ts";
import type { SampleOutcome } from "../outcome.ts";
import { digestOf } from "../sample/sample-key.ts";
import { closeAll, nothingToLog, onRoomOfAny, prepareAll } from "./parts.ts";
import type { ComponentPlan, StagePlan } from "./plan/reward-plan.ts";

export abstract class SeveralSources implements RewardSource {
  protected readonly sources: readonly RewardSource[];
  readonly #about: unknown;
  #versions = "";
  #digest = "";

  /**
   * Closes them when it is closed.
   *
   * @param about what its version hangs on beside theirs: names, weights
   */
  constructor(sources: readonly RewardSource[], about: unknown) {
    this.sources = sources;
    this.#about = about;
  }

  abstract get slots(): number;
  abstract hasRoomFor(lane: string): boolean;
  abstract score(sample: RewardSample, lane: string, asked?: AskedFor): Promise<SampleOutcome>;
  abstract scoreGroup(
    samples: readonly RewardSample[],
    lane: string,
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]>;

  /** One version for all sources, computed anew when one of them changes. */
  get version(): string {
    const versions = this.sources.map(({ version }) => version);
    const joined = versions.join(" ");
    if (joined !== this.#versions) {
      this.#versions = joined;
      this.#digest = versionOfSeveral(this.#about, versions);
    }
    return this.#digest;
  }

  get workerNames(): string[] {
    return this.sources.flatMap(({ workerNames }) => workerNames);
  }

  get traits(): ExecutorTraits {
    return {
      overlaps: this.sources.every(({ traits }) => traits.overlaps),
      scoresGroups: this.sources.some(({ traits }) => traits.scoresGroups),
      postProcesses: false,
      assembles: false,
      logs: this.sources.some(({ traits }) => traits.logs),
    };
  }

  isCongestedFor(lane: string): boolean {
    return this.sources.some((one) => one.isCongestedFor(lane));
  }

  onRoom(listener: () => void): () => void {
    return onRoomOfAny(this.sources, listener);
  }

  giveUp(signal: AbortSignal): void {
    for (const source of this.sources) source.giveUp(signal);
  }

  async postProcessScores(scores: GroupScoreList): Promise<GroupScores> {
    return { valid: true, scores };
  }

  async assembleRmScores(): Promise<undefined> {
    // checkTraits refuses sources with assembleRmScores.
  }

  /** Calls all functions that have a log; returns the first failure. */
  async log(entry: ScoreLogEntry): Promise<SampleOutcome> {
    const telling = this.sources.filter(({ traits }) => traits.logs);
    const logged = await Promise.all(telling.map((source) => source.log(entry)));
    return logged.find(({ valid }) => !valid) ?? logged[0] ?? nothingToLog;
  }

  prepareReload(): Promise<PreparedReload> {
    return prepareAll(this.sources);
  }

  close(): Promise<void> {
    return closeAll(this.sources);
  }
}

/** Returns the part of a cascade's version that its stages' versions do not cover. */
export function aboutCascade(stages: readonly Pick<StagePlan, "name" | "passOn">[]): unknown {
  return ["cascade", stages.map(({ name, passOn }) => [name, passOn])];
}

/** Returns the part of several rewards' version that their own versions do not cover. */
export function aboutRewards(
  combine: "sum" | "mean",
  components: readonly Pick<ComponentPlan, "name" | "weight" | "onInvalid">[],
): unknown {
  const parts = components.map(({ name, weight, onInvalid }) => [name, weight, onInvalid]);
  return ["rewards", combine, parts];
}

/** @param versions of its sources, in order */
export function versionOfSeveral(about: unknown, versions: readonly string[]): string {
  return digestOf([about, versions.join(" ")]);
}
