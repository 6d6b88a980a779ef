/**
 * Several rewards of each sample, each from its own source, asked at once and combined by their
 * weights.
 *
 * A sample is taken in as soon as one source has room for its lane and none is congested in it: so
 * each source is kept busy, and memory is bounded.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { itemAt } from "@rayling/reward-manager-registry/values";
import type { ComponentPlan } from "./plan/reward-plan.ts";
import { forPart } from "../pipeline/reward-source.ts";
import type { AskedFor, RewardSource } from "../pipeline/reward-source.ts";
import type { SampleOutcome } from "../outcome.ts";
import { combined } from "./combine.ts";
import { aboutRewards, SeveralSources } from "./several-sources.ts";

export type RewardComponentSource = Omit<ComponentPlan, "plan"> & { readonly source: RewardSource };

export class ComposedRewards extends SeveralSources {
  readonly #components: readonly RewardComponentSource[];
  readonly #combine: "sum" | "mean";

  /** Closes them when it is closed. */
  constructor(components: readonly RewardComponentSource[], combine: "sum" | "mean") {
    super(
      components.map(({ source }) => source),
      aboutRewards(combine, components),
    );
    this.#components = components;
    this.#combine = combine;
  }

  /** A sample takes one of each. */
  get slots(): number {
    return Math.min(...this.sources.map(({ slots }) => slots));
  }

  hasRoomFor(lane: string): boolean {
    return this.sources.some((one) => one.hasRoomFor(lane)) && !this.isCongestedFor(lane);
  }

  async score(sample: RewardSample, lane: string, asked?: AskedFor): Promise<SampleOutcome> {
    const { version } = this;
    const part = forPart(asked);
    const outcomes = await Promise.all(
      this.sources.map((source) => source.score(sample, lane, part)),
    );
    return { ...combined(this.#components, outcomes, this.#combine), version };
  }

  async scoreGroup(
    samples: readonly RewardSample[],
    lane: string,
    asked?: AskedFor,
  ): Promise<SampleOutcome[]> {
    const { version } = this;
    const part = forPart(asked);
    const byPart = await Promise.all(
      this.sources.map((one) => one.scoreGroup(samples, lane, part)),
    );
    return samples.map((_, at) => {
      const outcomes = byPart.map((of) => itemAt(of, at));
      return { ...combined(this.#components, outcomes, this.#combine), version };
    });
  }
}
