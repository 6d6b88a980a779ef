/**
 * How long calls take, of the last ones: when one takes longer than most did, a second one of it may be quicker (hedging).
 *
 * A call that was given up, or is still under way, took at least so long: those count, too (Kaplan and Meier's estimate), as without them what is known is the quick calls only.
 */

/** So many are remembered; with fewer than a tenth of it that were answered nothing is said. */
const remembered = 512;
/** It is worked out again after so many, or an eighth of those remembered or under way. */
const stale = 32;

export class LatencyQuantile {
  readonly #quantile: number;
  readonly #latencies: Float64Array = new Float64Array(remembered);
  /** Which of them are of calls that were answered. */
  readonly #isWhole: Uint8Array = new Uint8Array(remembered);
  #seen = 0;
  #answered = 0;
  #since = Infinity;
  #value: number | undefined;

  /** @param quantile 0.95: what 95 % of the calls do not exceed */
  constructor(quantile: number) {
    this.#quantile = quantile;
  }

  /** One was answered after that. */
  add(latencyMs: number): void {
    this.#answered += 1;
    this.#remember(latencyMs, 1);
  }

  /** One was given up after that. */
  addAtLeast(latencyMs: number): void {
    this.#remember(latencyMs, 0);
  }

  /**
   * Undefined while too little is known. Where more calls than that share were given up it is the quantile of those that were answered; where more are under way longer than
   * any that was answered, twice what that took.
   *
   * @param underWay how many calls are
   * @param agesMs of those
   */
  value(underWay: number = 0, agesMs: () => Iterable<number> = noAges): number | undefined {
    if (this.#answered < remembered / 10) return undefined;
    const most = Math.max(Math.min(stale, this.#seen / 8), underWay / 8);
    if (this.#since < most) return this.#value;
    this.#since = 0;
    const { took, atLeast } = this.#sorted();
    const share = 1 - this.#quantile;
    const ages = Float64Array.from([...atLeast, ...agesMs()]).toSorted();
    this.#value = outlivedBy(share, took, ages);
    if (this.#value !== undefined) return this.#value;
    const isGivenUp = outlivedBy(share, took, atLeast) === undefined;
    this.#value = isGivenUp ? outlivedBy(share, took, noTimes) : 2 * (took.at(-1) as number);
    return this.#value;
  }

  #remember(latencyMs: number, isWhole: 0 | 1): void {
    const at = this.#seen % remembered;
    this.#latencies[at] = latencyMs;
    this.#isWhole[at] = isWhole;
    this.#seen += 1;
    this.#since += 1;
  }

  #sorted(): { took: Float64Array; atLeast: Float64Array } {
    const latencies = this.#latencies.subarray(0, Math.min(this.#seen, remembered));
    return {
      took: latencies.filter((_, at) => this.#isWhole[at] === 1).toSorted(),
      atLeast: latencies.filter((_, at) => this.#isWhole[at] === 0).toSorted(),
    };
  }
}

const noAges = (): Iterable<number> => [];
const noTimes: Float64Array = new Float64Array();

/** The first of these times that no more than a share outlives; undefined: more do. Both are sorted. */
function outlivedBy(share: number, took: Float64Array, atLeast: Float64Array): number | undefined {
  let gone = 0;
  let alive = 1;
  for (const [at, ms] of took.entries()) {
    while (gone < atLeast.length && (atLeast[gone] as number) < ms) gone += 1;
    alive *= 1 - 1 / (took.length - at + atLeast.length - gone);
    if (alive <= share + 1e-9) return ms;
  }
  return undefined;
}
