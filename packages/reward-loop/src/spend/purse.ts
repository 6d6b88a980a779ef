/**
 * What judging costs: the price of each score by the tokens that it says it used, their sum, and whether there is anything left to spend. Pure.
 *
 * A purse may be part of another one: what is paid from it is counted there, too, and when that one is empty so is it.
 */

import { type PricesTable, purseOptions, type PurseTable } from "../options/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { OptionsOf, SettingsOf } from "../options/table.ts";
import type { SampleOutcome } from "../outcome.ts";
import { wholeUsageOf } from "./usage.ts";

/** In any currency. */
export type Prices = OptionsOf<PricesTable>;
export type SpendSettings = OptionsOf<PurseTable>;

export interface SpendState {
  /** Of which rewards: "" for all of them. */
  readonly name: string;
  readonly spent: number;
  readonly cap: number | undefined;
  /** "near": the share of the cap at which to warn is spent. "reached": all that may be. */
  readonly state: "free" | "near" | "reached";
}

/** Where a purse stands. */
export interface PursePlace {
  readonly name: string;
  /** What is paid is counted there, too. */
  readonly countedIn?: Purse | undefined;
  /** When that is empty, so is this one. */
  readonly limitedBy?: Purse | undefined;
  /** Told once when the cap is near, and once when it is reached. */
  readonly warn?: (state: SpendState) => void;
}

export class Purse {
  readonly #settings: SettingsOf<PurseTable>;
  readonly #place: PursePlace;
  #spent: number;
  #told: SpendState["state"] = "free";

  /** @param spentBefore in a run that this one goes on with; of what it is counted in, too, and not added there */
  constructor(settings: SpendSettings, place: PursePlace = { name: "" }, spentBefore: number = 0) {
    this.#settings = withDefaults(purseOptions, settings);
    this.#place = place;
    this.#spent = spentBefore;
  }

  get spent(): number {
    return this.#spent;
  }

  get isEmpty(): boolean {
    return this.state.state === "reached" || this.#place.limitedBy?.isEmpty === true;
  }

  /** Counted in no other one. */
  get isRoot(): boolean {
    return this.#place.countedIn === undefined;
  }

  get state(): SpendState {
    const { cap, warnAt } = this.#settings;
    const share = cap === undefined ? 0 : this.#spent / cap;
    // A cap of 0 is reached before anything is spent.
    const isReached = cap !== undefined && this.#spent >= cap;
    const state = isReached ? "reached" : share >= warnAt ? "near" : "free";
    return { name: this.#place.name, spent: this.#spent, cap, state };
  }

  /** What that cost, which is added to the sum. Attempts that failed cost their call, and the tokens that they said they used. */
  pay(outcome: SampleOutcome): number {
    const { perMillionInputTokens, perMillionOutputTokens, perCall } = this.#settings.prices;
    const usage = wholeUsageOf(outcome);
    const cost =
      perCall * outcome.attempts +
      ((usage?.inputTokens ?? 0) * perMillionInputTokens +
        (usage?.outputTokens ?? 0) * perMillionOutputTokens) /
        1e6;
    this.#add(cost);
    return cost;
  }

  #add(cost: number): void {
    this.#spent += cost;
    const state = this.state;
    if (state.state !== "free" && state.state !== this.#told) {
      this.#told = state.state;
      this.#place.warn?.(state);
    }
    const { countedIn } = this.#place;
    if (countedIn !== undefined) countedIn.#add(cost);
  }
}
