/**
 * Sources that are asked in order: the next one only where the one before has said nothing. The rule before the judge, the judge before the one that takes over, the log before all of them.
 *
 * Samples are taken in as long as the first has room and none of the others has so many waiting that one more would only wait longer.
 */

import type { RewardSample, ScoreLogEntry } from "@rayling/reward-manager-registry";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type { GroupScores, PreparedReload, RewardSource } from "../manager/reward-source.ts";
import type { AttemptOutcome, InvalidOutcome, SampleOutcome } from "../outcome.ts";
import { answered } from "./combine.ts";
import { closeAll, logAll, onRoomOfAny, prepareAll, traitsOf, VersionOfAll } from "./parts.ts";

export interface StageSource {
  readonly name: string;
  readonly source: RewardSource;
  /** Whether the next one is asked. */
  readonly passesOn: (outcome: InvalidOutcome) => boolean;
}

export class Cascade implements RewardSource {
  readonly #stages: readonly StageSource[];
  readonly #sources: readonly RewardSource[];
  readonly #version: VersionOfAll;

  /** Closes them when it is closed. */
  constructor(stages: readonly StageSource[]) {
    this.#stages = stages;
    this.#sources = stages.map(({ source }) => source);
    this.#version = new VersionOfAll(["cascade", stages.map(({ name }) => name)]);
  }

  get version(): string {
    return this.#version.of(this.#sources);
  }

  get workerNames(): string[] {
    return this.#sources.flatMap(({ workerNames }) => workerNames);
  }

  get traits(): ExecutorTraits {
    return traitsOf(this.#sources);
  }

  /** A sample takes one at a time. */
  get slots(): number {
    return this.#sources.reduce((sum, { slots }) => sum + slots, 0);
  }

  get hasRoom(): boolean {
    return (
      this.#sources[0]?.hasRoom === true && !this.#sources.slice(1).some((one) => one.isCongested)
    );
  }

  get isCongested(): boolean {
    return this.#sources.some(({ isCongested }) => isCongested);
  }

  onRoom(listener: () => void): () => void {
    return onRoomOfAny(this.#sources, listener);
  }

  async score(sample: RewardSample, lane: string): Promise<SampleOutcome> {
    const { version } = this;
    const asked: Record<string, SampleOutcome> = {};
    for (const { name, source, passesOn } of this.#stages) {
      const outcome = await source.score(sample, lane);
      asked[name] = outcome;
      if (outcome.valid || !passesOn(outcome)) break;
    }
    return { ...answered(asked), version };
  }

  async postProcessScores(scores: readonly number[]): Promise<GroupScores> {
    return { valid: true, scores };
  }

  async assembleRmScores(): Promise<undefined> {
    // Of several functions none has one (checkTraits).
  }

  log(entry: ScoreLogEntry): Promise<AttemptOutcome> {
    return logAll(this.#sources, entry);
  }

  prepareReload(): Promise<PreparedReload> {
    return prepareAll(this.#sources);
  }

  close(): Promise<void> {
    return closeAll(this.#sources);
  }
}
