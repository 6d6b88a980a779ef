/**
 * The timed policy with answers that repeat, as those of a real one do: what joining, a cache and
 * a rule may save hangs on that. An answer is a function of its prompt, its place in the group and
 * its step, so all arrangements score the same answers.
 */
import { createHash } from "node:crypto";
import * as ray from "@rayling/core";
import { TimedPolicy } from "@rayling/trainer";
import type { TimedPolicySettings } from "@rayling/trainer";

/** The mean score of steps 1, 6, 11 ... of 7b-megatron-both, as recorded. */
const rightShares: readonly number[] = [
  0.254, 0.876, 0.936, 0.959, 0.958, 0.96, 0.963, 0.97, 0.968, 0.969, 0.973, 0.976, 0.974, 0.982,
  0.973, 0.983, 0.976, 0.978, 0.981, 0.984, 0.984,
];
const stepsBetween = 5;

/**
 * Wrong answers to a prompt, each as likely: two wrong ones of GSM8K's example_model_solutions agree
 * in 10.5 % of 3,698 pairs, and they come from different models.
 */
const wrongAnswers = 10;

/** Methods as those of `TimedPolicy`. */
export class AnsweringPolicy {
  readonly #timed: TimedPolicy;

  constructor(settings: TimedPolicySettings) {
    this.#timed = new TimedPolicy(settings);
  }

  describe(): ReturnType<TimedPolicy["describe"]> {
    return this.#timed.describe();
  }

  promptLengths(...args: Parameters<TimedPolicy["promptLengths"]>): number[] {
    return this.#timed.promptLengths(...args);
  }

  async *generate(
    request: Parameters<TimedPolicy["generate"]>[0],
  ): ReturnType<TimedPolicy["generate"]> {
    const step = request.account?.step ?? 1;
    for await (const moment of this.#timed.generate(request)) {
      yield moment.map((rollout) => ({
        ...rollout,
        response: answerOf(rollout.response, step),
      }));
    }
  }

  logProbs(...args: Parameters<TimedPolicy["logProbs"]>): ReturnType<TimedPolicy["logProbs"]> {
    return this.#timed.logProbs(...args);
  }

  update(...args: Parameters<TimedPolicy["update"]>): ReturnType<TimedPolicy["update"]> {
    return this.#timed.update(...args);
  }

  state(): ReturnType<TimedPolicy["state"]> {
    return this.#timed.state();
  }

  setState(...args: Parameters<TimedPolicy["setState"]>): void {
    this.#timed.setState(...args);
  }
}

export const AnsweringPolicyActor: ray.ActorClass<typeof AnsweringPolicy> = ray.remote(
  AnsweringPolicy,
  { maxConcurrency: 1 },
);

/** The right answer to a prompt. */
export function rightAnswer(prompt: string): string {
  return `right ${prompt}`;
}

/** @param name "PROMPT #SAMPLE", as the timed policy answers */
export function answerOf(name: string, step: number): string {
  const prompt = name.slice(0, name.lastIndexOf(" #"));
  const draws = createHash("sha256").update(`${name} ${step}`).digest();
  if (draws.readUInt32LE(0) / 2 ** 32 < rightShareAt(step)) return rightAnswer(prompt);
  return `wrong ${draws.readUInt32LE(4) % wrongAnswers} ${prompt}`;
}

function rightShareAt(step: number): number {
  const place = Math.max(0, step - 1) / stepsBetween;
  const before = Math.floor(place);
  const [from = 0, to = from] = rightShares.slice(before, before + 2);
  if (before >= rightShares.length) return rightShares.at(-1) ?? 0;
  return from + (to - from) * (place - before);
}
