/**
 * How long a step is expected to take, from the times of its phases and of one reward: the closed
 * forms of the overlap (verl's recipe; its recorded runs are met within some percent), before
 * anything is run. Seconds throughout.
 *
 *     sync                 gen + max(old + ref, M) + adv + update
 *     mini-batch pipeline  gen, then each update as soon as its part of M is there
 *     one step ahead       max(M, gen + old + ref + adv + update)
 *                          (with the validation of its step: the next rewards do not wait for it)
 *     streaming            as the pipeline, with rewards that begin during gen; one step ahead
 *                          where the staleness limit allows it
 */

import type { TrainingValues } from "./options/training-options.ts";
import type { ExpectedSeconds } from "./options/index.ts";

export interface RewardLoad {
  /** Samples of a step. */
  readonly samples: number;
  /** At once. */
  readonly slots: number;
  /** Time of one sample: constant, or evenly spread between two values. */
  readonly seconds: number | readonly [number, number];
}

/**
 * M: from the first reward's beginning to the last one's end, first come first served. With even
 * times the slots are all busy until no sample waits, and then each has what is left of its own:
 * the mean of that is E[X^2] / 2 E[X], and its longest of all slots is near the longest there is.
 */
export function rewardMakespan({ samples, slots, seconds }: RewardLoad): number {
  if (typeof seconds === "number") return Math.ceil(samples / slots) * seconds;
  const [least, most] = seconds;
  const mean = (least + most) / 2;
  if (samples <= slots) return least + ((most - least) * samples) / (samples + 1);
  if (mean === 0) return 0;
  const meanLeft = (least ** 2 + least * most + most ** 2) / 3 / (2 * mean);
  const longestLeft = most * (1 - 1 / Math.sqrt(slots));
  return (samples * mean) / slots - meanLeft + longestLeft;
}

export interface StepTiming {
  readonly schedule: TrainingValues["schedule"];
  readonly seconds: ExpectedSeconds;
  /** M. */
  readonly makespan: number;
  /** Updates of a step. */
  readonly miniBatches: number;
  /** Whether rollouts may be a step older than the weights. */
  readonly isStale: boolean;
  /** Seconds at the end of the step: a validation, a checkpoint. */
  readonly also: number;
}

export function expectedStepSeconds(timing: StepTiming): number {
  const { schedule, seconds, makespan, miniBatches, isStale, also } = timing;
  const { gen = 0, oldLogProb = 0, ref = 0, values = 0, adv = 0 } = seconds;
  const { updateActor = 0, updateCritic = 0 } = seconds;
  const logProbs = oldLogProb + ref + values;
  const update = updateActor + updateCritic;
  const ahead = (): number => Math.max(makespan, gen + logProbs + adv + update + also);
  switch (schedule) {
    case "sync":
      return gen + Math.max(logProbs, makespan) + adv + update + also;
    case "mini-batch-pipeline":
      return (
        also +
        adv +
        pipelined({
          ready: gen + logProbs,
          start: gen,
          makespan,
          work: update,
          parts: miniBatches,
        })
      );
    case "one-step-off-policy":
    case "one-step-pipeline":
      return ahead();
    case "streaming":
      return isStale
        ? ahead()
        : also +
            adv +
            pipelined({
              ready: gen,
              start: 0,
              makespan,
              work: logProbs + update,
              parts: miniBatches,
            });
    default:
      return schedule satisfies never;
  }
}

/**
 * Parts arrive evenly over the makespan, and each is worked on when it is there and the one before
 * is done.
 */
function pipelined({
  ready,
  start,
  makespan,
  work,
  parts,
}: Readonly<Record<"ready" | "start" | "makespan" | "work" | "parts", number>>): number {
  let end = ready;
  for (let part = 1; part <= parts; part++) {
    end = Math.max(end, start + (makespan * part) / parts) + work / parts;
  }
  return end;
}
