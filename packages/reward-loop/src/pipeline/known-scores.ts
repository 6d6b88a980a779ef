/**
 * Looks up, before a sample goes to a worker, whether its score is known or already being computed.
 *
 * A score that depends on where and when its sample is scored is not shared and not kept. Equal
 * samples that come while the first of them is being scored get its outcome; they are not scored,
 * and cost nothing. A group one of whose members has failed is not kept: its scores belong
 * together, and that failure may not recur. A cache that cannot be read, or cannot be written any
 * more (a full disk), is reported once for each and costs no outcome: a missing entry is an unknown
 * score.
 */

import type { RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { warn } from "@rayling/core/terminal";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { RewardCacheError } from "../errors.ts";
import type { SampleOutcome } from "../outcome.ts";
import { isGroup, memberFailuresIn } from "../sample/group-sample.ts";
import { groupKeys, olderSampleKeys, sampleKey } from "../sample/sample-key.ts";
import type { ScoreCache } from "../spend/score-cache.ts";

/** How a sample without a known score is asked for. */
interface Asking {
  readonly ask: () => Promise<SampleOutcome>;
  /** Aborted when its owner gives it up. */
  readonly signal: AbortSignal | undefined;
}

interface UnderWay {
  readonly asking: Promise<SampleOutcome>;
  readonly signal: AbortSignal | undefined;
}

export class KnownScores {
  readonly #cache: ScoreCache | undefined;
  readonly #underWay: Map<string, UnderWay> = new Map();
  /** Uses of the cache that have failed, and were reported. */
  readonly #reported: Set<CacheUse> = new Set();

  /**
   * @param cache closed with this object. Without one equal samples are joined, and nothing is
   * kept.
   */
  constructor(cache: ScoreCache | undefined) {
    this.#cache = cache;
  }

  /**
   * Its score, by `ask` if it has to be. An equal sample whose owner gives it up meanwhile is asked
   * for again.
   *
   * @param version of the function that is asked
   */
  async of(sample: RewardSample, version: string, { ask, signal }: Asking): Promise<SampleOutcome> {
    const cache = this.#cache;
    const key = keyOf(sample);
    // It cannot travel either: the answer says why.
    if (key === undefined) return ask();
    const isWhole = (result: RewardResult): boolean =>
      memberFailuresIn(sample, result).length === 0;
    const known = cache && this.#tried("find", () => find(cache, version, key, sample));
    // Earlier versions have kept groups with a failure, too.
    if (known !== undefined && isWhole(known)) return { valid: true, ...known, ...free, version };
    const asked = `${version} ${key}`;
    // Nothing is awaited between the last look and the asking: it is asked for once.
    for (let first = this.#underWay.get(asked); first !== undefined;) {
      const outcome = await outcomeOf(first, signal);
      if (outcome !== undefined) {
        if (outcome.readsContext === true) break;
        return joined(outcome);
      }
      if (this.#underWay.get(asked) === first) this.#underWay.delete(asked);
      first = this.#underWay.get(asked);
    }
    const asking = ask();
    this.#underWay.set(asked, { asking, signal });
    try {
      const outcome = await asking;
      // The outcome's own version counts: its worker may have died, and a newer one have taken
      // over.
      const isKept = outcome.valid && outcome.readsContext !== true && isWhole(outcome);
      if (cache !== undefined && isKept) {
        this.#tried("keep", () => cache.keep(outcome.version ?? version, key, outcome));
      }
      return outcome;
    } finally {
      if (this.#underWay.get(asked)?.asking === asking) this.#underWay.delete(asked);
    }
  }

  async close(): Promise<void> {
    await this.#cache?.close();
  }

  #tried<Value>(use: CacheUse, of: () => Value): Value | undefined {
    try {
      return of();
    } catch (error) {
      if (this.#cache !== undefined && !this.#reported.has(use)) {
        this.#reported.add(use);
        // The path stands before it.
        const why = messageOf(error instanceof RewardCacheError ? error.cause : error);
        warn(`the cache of scores ${this.#cache.name} ${lossBy[use]}: ${why}`);
      }
      return undefined;
    }
  }
}

/** Says for each use of the cache what its failure costs. */
const lossBy = {
  find: "does not give all of its scores, which are asked for again",
  keep: "cannot be written: scores are not kept (how many is said at the end), and are asked for again next time",
} as const;

type CacheUse = keyof typeof lossBy;

/**
 * Returns the outcome of an equal sample. Undefined: its owner gave it up, and this one's did not.
 */
async function outcomeOf(
  { asking, signal: its }: UnderWay,
  signal: AbortSignal | undefined,
): Promise<SampleOutcome | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (its?.aborted === true && signal?.aborted !== true) return undefined;
    throw error;
  }
}

/** Returns what the outcome of an equal sample is for one that was not asked for. */
function joined(outcome: SampleOutcome): SampleOutcome {
  const { usageBefore: _, used: __, unknownUse: ___, hedges: ____, ...own } = outcome;
  return { ...withOwnExtra(own), ...free };
}

/** Returns its key. Undefined where it throws when it is read. */
function keyOf(sample: RewardSample): string | undefined {
  try {
    return isGroup(sample) ? groupKeys(sample.members)[0] : sampleKey(sample);
  } catch {
    return undefined;
  }
}

/** Finds a score by the first key that is known: the sample's, or one of earlier releases. */
function find(
  cache: ScoreCache,
  version: string,
  key: string,
  sample: RewardSample,
): RewardResult | undefined {
  const known = cache.find(version, key);
  if (known !== undefined) return known;
  const older = isGroup(sample) ? groupKeys(sample.members).slice(1) : olderSampleKeys(sample);
  for (const one of older) {
    const before = cache.find(version, one);
    if (before !== undefined) return before;
  }
  return undefined;
}

/** Returns the outcome with extra info of its own: who writes into it writes into no other's. */
function withOwnExtra(outcome: SampleOutcome): SampleOutcome {
  if (outcome.valid) return { ...outcome, rewardExtraInfo: copyOf(outcome.rewardExtraInfo) };
  const { rewardExtraInfo } = outcome.error;
  if (rewardExtraInfo === undefined) return outcome;
  return { ...outcome, error: { ...outcome.error, rewardExtraInfo: copyOf(rewardExtraInfo) } };
}

/** Most values are texts and numbers, which need no copy. */
function copyOf(extra: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy = { ...extra };
  for (const [name, value] of Object.entries(extra)) {
    if (typeof value === "object" && value !== null) copy[name] = structuredClone(value);
  }
  return copy;
}

/** Measurements of a sample that was not scored. */
const free = { attempts: 0, latencyMs: 0, waitedMs: 0, cached: true, cost: 0 } as const;
