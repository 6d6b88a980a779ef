/** What judging costs: the price of each score by the tokens that it says it used, their sum, and whether there is anything left to spend. Pure. */

import type { SampleOutcome } from "../outcome.ts";
import { usageOf } from "./usage.ts";

/** In any currency. */
export interface Prices {
  readonly perMillionInputTokens?: number;
  readonly perMillionOutputTokens?: number;
  /** Of a call, whatever it used. */
  readonly perCall?: number;
}

export interface SpendSettings {
  readonly prices: Prices;
  /** When that much is spent no sample is begun any more: its outcome is SPEND_CAP. What is under way then is finished, and may go beyond it. Default: none. */
  readonly cap?: number;
}

export class Purse {
  readonly #settings: SpendSettings;
  #spent = 0;

  constructor(settings: SpendSettings) {
    this.#settings = settings;
  }

  get spent(): number {
    return this.#spent;
  }

  get isEmpty(): boolean {
    return this.#spent >= (this.#settings.cap ?? Infinity);
  }

  /** What that cost, which is added to the sum. Attempts that failed cost their call; what tokens they used nobody says. */
  pay(outcome: SampleOutcome): number {
    const {
      perMillionInputTokens = 0,
      perMillionOutputTokens = 0,
      perCall = 0,
    } = this.#settings.prices;
    const usage = outcome.valid ? usageOf(outcome.rewardExtraInfo) : undefined;
    const cost =
      perCall * outcome.attempts +
      ((usage?.inputTokens ?? 0) * perMillionInputTokens +
        (usage?.outputTokens ?? 0) * perMillionOutputTokens) /
        1e6;
    this.#spent += cost;
    return cost;
  }
}
