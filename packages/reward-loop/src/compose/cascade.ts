/**
 * Sources that are asked in order, each only if the one before gave no answer: the rule before the
 * judge, the judge before its substitute, the log before all of them.
 *
 * A sample is taken in while the first source has room for its lane and no later source is
 * congested in it.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { itemAt } from "@rayling/reward-manager-registry/values";
import { forPart } from "../pipeline/reward-source.ts";
import type { AskedFor, RewardSource } from "../pipeline/reward-source.ts";
import type { InvalidOutcome, SampleOutcome } from "../outcome.ts";
import { answered } from "./combine.ts";
import type { StagePlan } from "./plan/reward-plan.ts";
import { aboutCascade, SeveralSources } from "./several-sources.ts";

export interface StageSource extends Pick<StagePlan, "name" | "passOn"> {
  readonly source: RewardSource;
}

export class Cascade extends SeveralSources {
  readonly #stages: readonly StageSource[];

  /** Closes them when it is closed. */
  constructor(stages: readonly StageSource[]) {
    super(
      stages.map(({ source }) => source),
      aboutCascade(stages),
    );
    this.#stages = stages;
  }

  /** A sample takes one at a time. */
  get slots(): number {
    return this.sources.reduce((sum, { slots }) => sum + slots, 0);
  }

  hasRoomFor(lane: string): boolean {
    const [first, ...later] = this.sources;
    return first?.hasRoomFor(lane) === true && !later.some((one) => one.isCongestedFor(lane));
  }

  async score(sample: RewardSample, lane: string, whole?: AskedFor): Promise<SampleOutcome> {
    const { version } = this;
    const part = forPart(whole);
    const asked: Record<string, SampleOutcome> = {};
    for (const { name, source, passOn } of this.#stages) {
      const outcome = await source.score(sample, lane, part);
      asked[name] = outcome;
      if (outcome.valid || !passesOn(outcome, passOn)) break;
    }
    return { ...answered(asked), version };
  }

  /** A stage is asked for those together that the ones before it have passed on. */
  async scoreGroup(
    samples: readonly RewardSample[],
    lane: string,
    whole?: AskedFor,
  ): Promise<SampleOutcome[]> {
    const { version } = this;
    const part = forPart(whole);
    const asked = samples.map((): Record<string, SampleOutcome> => ({}));
    let left = samples.map((_, at) => at);
    for (const { name, source, passOn } of this.#stages) {
      if (left.length === 0) break;
      const given = left.map((at) => itemAt(samples, at));
      const outcomes = await source.scoreGroup(given, lane, part);
      left = left.filter((at, place) => {
        const outcome = itemAt(outcomes, place);
        itemAt(asked, at)[name] = outcome;
        return !outcome.valid && passesOn(outcome, passOn);
      });
    }
    return asked.map((one) => ({ ...answered(one), version }));
  }
}

/** Whether the next one is asked. */
function passesOn({ error }: InvalidOutcome, passOn: StageSource["passOn"]): boolean {
  return passOn === "invalid" || error.code === "CANNOT_TELL";
}
