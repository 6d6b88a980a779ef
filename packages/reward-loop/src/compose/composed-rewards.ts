/**
 * Several rewards of each sample, each from a source of its own, asked at once and put together by their weights.
 *
 * A sample is taken in as soon as one of them has room for it, as long as none has so many waiting that it would only wait longer: so each is kept busy, and memory is bounded.
 */

import type { RewardSample, ScoreLogEntry } from "@rayling/reward-manager-registry";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type { ComponentPlan } from "./reward-plan.ts";
import type { GroupScores, PreparedReload, RewardSource } from "../manager/reward-source.ts";
import type { AttemptOutcome, SampleOutcome } from "../outcome.ts";
import { combined } from "./combine.ts";
import { closeAll, logAll, onRoomOfAny, prepareAll, traitsOf, VersionOfAll } from "./parts.ts";

export type RewardComponentSource = Omit<ComponentPlan, "plan"> & { readonly source: RewardSource };

export class ComposedRewards implements RewardSource {
  readonly #components: readonly RewardComponentSource[];
  readonly #sources: readonly RewardSource[];
  readonly #combine: "sum" | "mean";
  readonly #version: VersionOfAll;

  /** Closes them when it is closed. */
  constructor(components: readonly RewardComponentSource[], combine: "sum" | "mean") {
    this.#components = components;
    this.#sources = components.map(({ source }) => source);
    this.#combine = combine;
    const parts = components.map(({ name, weight, onInvalid }) => [name, weight, onInvalid]);
    this.#version = new VersionOfAll(["rewards", combine, parts]);
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

  /** A sample takes one of each. */
  get slots(): number {
    return Math.min(...this.#sources.map(({ slots }) => slots));
  }

  get hasRoom(): boolean {
    return this.#sources.some(({ hasRoom }) => hasRoom) && !this.isCongested;
  }

  get isCongested(): boolean {
    return this.#sources.some(({ isCongested }) => isCongested);
  }

  onRoom(listener: () => void): () => void {
    return onRoomOfAny(this.#sources, listener);
  }

  async score(sample: RewardSample, lane: string): Promise<SampleOutcome> {
    const { version } = this;
    const outcomes = await Promise.all(this.#sources.map((source) => source.score(sample, lane)));
    return { ...combined(this.#components, outcomes, this.#combine), version };
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
