/**
 * Before a sample goes to a worker: whether its score is known, or is being asked for already.
 *
 * A score that hangs on where and when its sample is scored is nobody else's, and is not kept.
 * Samples that say the same and come while the first of them is under way get its outcome; they are not called for, and cost nothing.
 * A cache that cannot be read or written any more (a full disk, another that writes) is told once, and costs no outcome: what it cannot say is not known.
 */

import type { RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { warn } from "@rayling/core/terminal";
import type { SampleOutcome } from "../outcome.ts";
import { olderSampleKeys, sampleKey } from "../record/sample-key.ts";
import type { ScoreCache } from "../spend/score-cache.ts";

export class KnownScores {
  readonly #cache: ScoreCache | undefined;
  readonly #underWay: Map<string, Promise<SampleOutcome>> = new Map();
  #hasWarned = false;

  /** Without a cache samples that say the same are joined, and nothing is kept. It closes the cache. */
  constructor(cache: ScoreCache | undefined) {
    this.#cache = cache;
  }

  /**
   * Its score, by `ask` if it has to be.
   *
   * @param version of the function that is asked
   */
  async of(
    sample: RewardSample,
    version: string,
    ask: () => Promise<SampleOutcome>,
  ): Promise<SampleOutcome> {
    const cache = this.#cache;
    const key = sampleKey(sample);
    const known =
      cache && this.#tried(() => find(cache, version, [key, ...olderSampleKeys(sample)]));
    if (known !== undefined) return { valid: true, ...known, ...free, version };
    const asked = `${version} ${key}`;
    const first = this.#underWay.get(asked);
    if (first !== undefined) {
      const outcome = await first;
      if (outcome.readsContext !== true) return { ...outcome, ...free };
    }
    const asking = ask();
    this.#underWay.set(asked, asking);
    try {
      const outcome = await asking;
      // By the function that gave it: its worker may have died, and a newer one have taken over.
      if (cache !== undefined && outcome.valid && outcome.readsContext !== true) {
        this.#tried(() => cache.keep(outcome.version ?? version, key, outcome));
      }
      return outcome;
    } finally {
      this.#underWay.delete(asked);
    }
  }

  close(): void {
    this.#cache?.close();
  }

  #tried<Value>(use: () => Value): Value | undefined {
    try {
      return use();
    } catch (error) {
      if (!this.#hasWarned) {
        this.#hasWarned = true;
        const message = error instanceof Error ? error.message : String(error);
        warn(
          `the cache of scores failed, and scoring goes on without what it cannot do: ${message}`,
        );
      }
      return undefined;
    }
  }
}

/** By the first of its keys that is known. */
function find(
  cache: ScoreCache,
  version: string,
  keys: readonly string[],
): RewardResult | undefined {
  for (const key of keys) {
    const known = cache.find(version, key);
    if (known !== undefined) return known;
  }
  return undefined;
}

/** Nothing was called for it. */
const free = { attempts: 0, latencyMs: 0, waitedMs: 0, cached: true, cost: 0 } as const;
