/**
 * The cost of judging: the price of calls by their tokens, the sum, and whether another call may be
 * paid for. Pure.
 *
 * A budget may be part of another one: its payments count there, too, and when that one is empty so
 * is it. Invariant: with a known most per call, the spent and the reserved amounts together never
 * exceed the cap.
 */

import Queue from "yocto-queue";
import {
  pricesOptions,
  type PricesTable,
  type MostPerCallTable,
  budgetOptions,
  type BudgetTable,
} from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { OptionsOf, SettingsOf } from "../options/table.ts";
import type { SampleOutcome } from "../outcome.ts";
import { wholeUsageOf } from "./usage.ts";
import type { TokenUsage } from "../outcome.ts";

/** Prices in any currency. */
export type Prices = OptionsOf<PricesTable>;
/** Prices of calls, and the most that may be spent. */
export type SpendSettings = OptionsOf<BudgetTable>;

/** The usage of attempts that are over. */
export interface Use {
  readonly attempts: number;
  readonly usage: TokenUsage | undefined;
  /** Attempts with unknown usage among them. */
  readonly unknown: number;
}

/** Whether another call may begin: not before others have ended, perhaps. */
type Room = "yes" | "later" | "no";

/** Sums of prices are not exact. */
const tolerance = 1 + 1e-9;

/** How much of a cap is spent. */
export interface SpendState {
  /** The name of the rewards that it pays for: "" for all of them. */
  readonly name: string;
  /** The cost so far, in the currency of the prices. */
  readonly spent: number;
  /** The most that may be spent; undefined: no limit. */
  readonly cap: number | undefined;
  /** "near": the share of the cap at which to warn is spent. "reached": all that may be. */
  readonly state: "free" | "near" | "reached";
}

/** A budget's place among others. */
export interface BudgetPlace {
  readonly name: string;
  /** Payments count in this budget, too. */
  readonly countedIn?: Budget | undefined;
  /** The budget that limits this one: when it is empty, so is this one. */
  readonly limitedBy?: Budget | undefined;
  /** Called once when the cap is near, and once when it is reached. */
  readonly warn?: (state: SpendState) => void;
}

export class Budget {
  readonly #settings: SettingsOf<BudgetTable>;
  readonly #place: BudgetPlace;
  /** The price of the most that a call may use; 0: unknown. */
  readonly #most: number = 0;
  /** Budgets that this one limits. */
  readonly #limited: Budget[] = [];
  readonly #line: Queue<(isAllowed: boolean) => void> = new Queue();
  #spent: number;
  /** Reserved for pending calls, including those of budgets that are counted here. */
  #setAside = 0;
  #reported: SpendState["state"] = "free";

  /**
   * @param spentBefore in the run that is resumed; the outer budget has its own and does not add it
   */
  constructor(settings: SpendSettings, place: BudgetPlace = { name: "" }, spentBefore: number = 0) {
    this.#settings = withDefaults(budgetOptions, settings);
    this.#place = place;
    this.#spent = spentBefore;
    const { mostPerCall } = this.#settings;
    if (mostPerCall !== undefined) {
      const usage = dearestUsage(mostPerCall, this.#settings.prices);
      this.#most = this.costOf({ attempts: 1, usage, unknown: 0 });
    }
    if (place.limitedBy !== undefined) place.limitedBy.#limited.push(this);
  }

  get spent(): number {
    return this.#spent;
  }

  /** No call may begin any more. */
  get isEmpty(): boolean {
    return this.#roomFor(this.#most) === "no";
  }

  /** Whether there may come a time when no further call may begin. */
  get isLimited(): boolean {
    return this.#settings.cap !== undefined || this.#place.limitedBy?.isLimited === true;
  }

  /** Whether it is counted in no other budget. */
  get isRoot(): boolean {
    return this.#place.countedIn === undefined;
  }

  get state(): SpendState {
    const { cap, warnAt } = this.#settings;
    const share = cap === undefined ? 0 : this.#spent / cap;
    const isReached = this.#ownRoomFor(this.#most) === "no";
    const state = isReached ? "reached" : share >= warnAt ? "near" : "free";
    return { name: this.#place.name, spent: this.#spent, cap, state };
  }

  /**
   * Returns the cost of an outcome and adds it to the sum. Failed attempts cost their call, and
   * their tokens.
   */
  pay(outcome: SampleOutcome): number {
    const cost = this.costOf(useOf(outcome));
    this.settle(cost, 0);
    return cost;
  }

  costOf({ attempts, usage, unknown }: Use): number {
    const { prices } = this.#settings;
    const known = priceBy(prices, { attempts, usage });
    return known + unknown * Math.max(0, this.#most - prices.perCall);
  }

  /**
   * Resolves to whether a call may begin, when that is certain: while pending calls may leave
   * enough, it waits for them, in the order of claims. Each allowed call has to be settled.
   */
  claim(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#line.enqueue(resolve);
      this.#serve();
    });
  }

  /** Adds a cost to the sum. @param calls the number of pending calls that have ended */
  settle(cost: number, calls: number): void {
    this.#change(cost, -calls * this.#most);
  }

  #roomFor(amount: number): Room {
    const own = this.#ownRoomFor(amount);
    const { limitedBy } = this.#place;
    const limit = limitedBy === undefined ? "yes" : limitedBy.#roomFor(amount);
    if (own === "no" || limit === "no") return "no";
    return own === "later" ? own : limit;
  }

  #ownRoomFor(amount: number): Room {
    const { cap } = this.#settings;
    if (cap === undefined) return "yes";
    // A cap of 0 is reached before anything is spent.
    if (this.#spent >= cap) return "no";
    if (amount === 0 || this.#spent + this.#setAside + amount <= cap * tolerance) return "yes";
    return this.#spent + amount <= cap * tolerance && this.#setAside > 0 ? "later" : "no";
  }

  /** Allows waiting claims in order. */
  #serve(): void {
    for (;;) {
      const first = this.#line.peek();
      if (first === undefined) return;
      const room = this.#roomFor(this.#most);
      if (room === "later") return;
      this.#line.dequeue();
      if (room === "yes") this.#change(0, this.#most);
      first(room === "yes");
    }
  }

  #change(spent: number, setAside: number): void {
    this.#spent += spent;
    // Sums of prices are not exact, and nothing less than nothing is set aside.
    const left = this.#setAside + setAside;
    this.#setAside = left > this.#most * 1e-6 ? left : 0;
    const state = this.state;
    if (state.state !== "free" && state.state !== this.#reported) {
      this.#reported = state.state;
      this.#place.warn?.(state);
    }
    const { countedIn } = this.#place;
    if (countedIn !== undefined) countedIn.#change(spent, setAside);
    if (spent === 0 && setAside >= 0) return;
    this.#serve();
    for (const one of this.#limited) one.#serve();
  }
}

const nothingUsed: TokenUsage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

/** Returns the usage that costs most: its tokens may all be cached, or reasoning. */
function dearestUsage(
  { inputTokens, outputTokens }: SettingsOf<MostPerCallTable>,
  prices: SettingsOf<PricesTable>,
): TokenUsage {
  const isCacheDearer = prices.perMillionCachedInputTokens > prices.perMillionInputTokens;
  const isReasoningDearer = prices.perMillionReasoningTokens > prices.perMillionOutputTokens;
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: isCacheDearer ? inputTokens : 0,
    reasoningTokens: isReasoningDearer ? outputTokens : 0,
  };
}

/** Returns the price of calls by their usage. */
export function priceOf(prices: Prices, use: Pick<Use, "attempts" | "usage">): number {
  return priceBy(withDefaults(pricesOptions, prices), use);
}

/** For each sample of a loop: no default is looked up. */
function priceBy(
  prices: SettingsOf<PricesTable>,
  { attempts, usage }: Pick<Use, "attempts" | "usage">,
): number {
  const {
    perCall,
    perMillionInputTokens: input,
    perMillionOutputTokens: output,
    perMillionCachedInputTokens: cached,
    perMillionReasoningTokens: reasoning,
  } = prices;
  const { inputTokens, outputTokens, ...parts } = usage ?? nothingUsed;
  const { cachedInputTokens: cachedTokens = 0, reasoningTokens: thoughtTokens = 0 } = parts;
  const perMillion =
    (inputTokens - cachedTokens) * input +
    cachedTokens * cached +
    (outputTokens - thoughtTokens) * output +
    thoughtTokens * reasoning;
  return perCall * attempts + perMillion / 1e6;
}

/** Returns the usage of all attempts of an outcome. */
export function useOf(outcome: SampleOutcome): Use {
  const { attempts, unknownUse: unknown = 0 } = outcome;
  return { attempts, usage: wholeUsageOf(outcome), unknown };
}
