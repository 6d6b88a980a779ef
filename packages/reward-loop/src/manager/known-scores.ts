/**
 * Before a sample goes to a worker: whether its score is known, or is being asked for already, or may not be paid for any more.
 *
 * Samples that say the same and come while the first of them is under way get its outcome; they are not called for, and cost nothing.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome } from "../outcome.ts";
import { sampleKey } from "../record/sample-key.ts";
import type { Purse } from "../spend/purse.ts";
import type { ScoreCache } from "../spend/score-cache.ts";

export interface KnownParts {
  readonly cache: ScoreCache | undefined;
  readonly purse: Purse | undefined;
  /** Whether samples that say the same are asked for once. */
  readonly joins: boolean;
}

export class KnownScores {
  readonly #parts: KnownParts;
  readonly #underWay: Map<string, Promise<SampleOutcome>> = new Map();

  constructor(parts: KnownParts) {
    this.#parts = parts;
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
    const { cache, joins } = this.#parts;
    if (cache === undefined && !joins) return this.#pay(version, ask);
    const key = sampleKey(sample);
    const known = cache?.find(version, key);
    if (known !== undefined) return { valid: true, ...known, ...free, version };
    const asked = `${version} ${key}`;
    const first = this.#underWay.get(asked);
    if (first !== undefined) {
      const outcome = await first;
      return { ...outcome, ...free };
    }
    const asking = this.#pay(version, ask);
    this.#underWay.set(asked, asking);
    try {
      const outcome = await asking;
      // By the function that gave it: its worker may have died, and a newer one have taken over.
      if (outcome.valid) cache?.keep(outcome.version ?? version, key, outcome);
      return outcome;
    } finally {
      this.#underWay.delete(asked);
    }
  }

  close(): void {
    this.#parts.cache?.close();
  }

  async #pay(version: string, ask: () => Promise<SampleOutcome>): Promise<SampleOutcome> {
    const { purse } = this.#parts;
    if (purse === undefined) return ask();
    if (purse.isEmpty) return { ...unpaid(purse), version };
    const outcome = await ask();
    const cost = purse.pay(outcome);
    return { ...outcome, cost };
  }
}

/** Nothing was called for it. */
const free = { attempts: 0, latencyMs: 0, waitedMs: 0, cached: true, cost: 0 } as const;

function unpaid({ spent }: Purse): SampleOutcome {
  const message = `it was not scored: ${spent.toPrecision(6)} is spent, which is all that may be`;
  const error = { code: "SPEND_CAP", name: "SpendCapError", message } as const;
  return { valid: false, error, latencyMs: 0, attempts: 0, waitedMs: 0, cost: 0 };
}
