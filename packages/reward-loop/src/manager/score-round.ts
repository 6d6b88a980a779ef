/**
 * Samples that belong together: a batch, or the rows of a request as they come. `again` waits for
 * the others of the round, and `failAbove` counts its rows.
 *
 * A second scoring begins before the model that the last of the others kept awake may sleep.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { itemAt } from "@rayling/reward-manager-registry/values";
import { behind } from "../compose/combine.ts";
import { after, earlierOf } from "../outcome.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { FailureSettings } from "../settings/policy-settings.ts";
import type { AskedFor } from "../pipeline/reward-source.ts";
import type { SamplePlace } from "../record/outcome-recorder.ts";
import { inLane } from "../sample/lane.ts";
import { FailureTally, isWorthAgain, withFallback } from "./failures.ts";
import type { EarlierRows } from "./failures.ts";

/** The loop's part in a round. */
export interface RoundScorer {
  readonly onFailure: FailureSettings;
  /** The place of a sample in the reward log, if there is one. */
  readonly takePlace: (sample: RewardSample) => SamplePlace | undefined;
  /** Once, without fallback. */
  readonly submit: (
    sample: RewardSample,
    lane: string,
    place: SamplePlace | undefined,
    asked?: AskedFor,
  ) => Promise<SampleOutcome>;
  readonly submitGroup: (
    samples: readonly RewardSample[],
    lane: string,
    places: readonly (SamplePlace | undefined)[],
    asked?: AskedFor,
  ) => Promise<readonly SampleOutcome[]>;
  /** The signal was aborted that samples were asked for with. */
  readonly giveUp: (signal: AbortSignal) => void;
  /** A sample of the round is not asked for. */
  readonly spared: () => void;
  /** Runs `work` with the reward model awake, if there is one. */
  readonly awake: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

/** The samples of a round. */
export interface RoundOptions {
  readonly lane: string;
  /** Rows of the same batch that count for `failAbove`, too. */
  readonly earlier?: EarlierRows | undefined;
}

interface SecondScoring {
  readonly begin: () => void;
  readonly reject: (error: unknown) => void;
  readonly signal: AbortSignal | undefined;
}

export class ScoreRound {
  readonly #scorer: RoundScorer;
  readonly #lane: string;
  readonly #tally: FailureTally;
  /** Rows that were not scored for the first time yet. */
  #left: number;
  /** Samples that wait for their second scoring. */
  #second: SecondScoring[] = [];
  #failure: { readonly error: unknown } | undefined;
  readonly #onEnd: (round: ScoreRound) => void;

  /**
   * @param rows the number of rows that will be scored, or are known @param onEnd called when no
   * row is left, or the round has failed
   */
  constructor(
    scorer: RoundScorer,
    { rows, lane, earlier }: RoundOptions & { readonly rows: number },
    onEnd: (round: ScoreRound) => void,
  ) {
    this.#scorer = scorer;
    this.#lane = lane;
    this.#left = rows;
    this.#tally = new FailureTally(rows, scorer.onFailure, earlier);
    this.#onEnd = onEnd;
  }

  /**
   * Resolves to the final outcome: a failed sample that is worth it is scored once more when all
   * other rows are done. Rejects as `RewardLoopManager.computeScore`.
   *
   * @param asked with a signal, it may be given up: `giveUp`
   */
  async score(given: RewardSample, asked?: AskedFor): Promise<SampleOutcome> {
    const { takePlace, submit } = this.#scorer;
    const sample = inLane(given, this.#lane);
    const place = takePlace(sample);
    const once: Submit = async (lane) => [await submit(sample, lane, place, asked)];
    return itemAt(await this.#rows(1, once, asked?.signal), 0);
  }

  /**
   * Scores all answers to a prompt, in their order; where one is to be scored once more, all are.
   */
  async scoreGroup(
    given: readonly RewardSample[],
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]> {
    const { takePlace, submitGroup } = this.#scorer;
    const samples = given.map((sample) => inLane(sample, this.#lane));
    const places = samples.map((sample) => takePlace(sample));
    const once: Submit = (lane) => submitGroup(samples, lane, places, asked);
    return this.#rows(given.length, once, asked?.signal);
  }

  /**
   * The signal was aborted: rows that were asked for with it reject with its reason, and the round
   * goes on without them. A row that waits to be scored once more is given up, too.
   */
  giveUp(signal: AbortSignal): void {
    this.#scorer.giveUp(signal);
    const { mine = [], others = [] } = Object.groupBy(this.#second, (second) =>
      second.signal === signal ? "mine" : "others",
    );
    this.#second = others;
    for (const { reject } of mine) reject(signal.reason);
  }

  async #rows(
    count: number,
    submit: Submit,
    signal: AbortSignal | undefined,
  ): Promise<readonly SampleOutcome[]> {
    const { onFailure, awake } = this.#scorer;
    let left = count;
    const arrived = (): void => {
      this.#arrived(left);
      left = 0;
    };
    try {
      // The second scoring waits outside: it would keep the model awake for that long.
      const { first, again } = await awake(async () => {
        const outcomes = await submit(this.#lane);
        const isAgain = onFailure.again && outcomes.some(isWorthAgain);
        const second = isAgain ? this.#again(submit, signal) : undefined;
        arrived();
        return { first: outcomes, again: second };
      });
      const second = await again;
      const last = second?.map((one, at) => joined(itemAt(first, at), one)) ?? first;
      return last.map((one) => withFallback(one, onFailure));
    } catch (error) {
      if (signal?.aborted === true) arrived();
      else this.fail(error);
      throw error;
    }
  }

  /** Counts a row whose outcome is already known, or not needed. */
  know(): void {
    this.#scorer.spared();
    this.#arrived(1);
  }

  /**
   * Throws RewardFailuresError as soon as too many outcomes are invalid. @param outcome of one more
   * row, in its final form
   */
  count(outcome: SampleOutcome): void {
    // Where failures of earlier rows are too many by themselves, a score is not to blame.
    if (outcome.valid) return;
    this.#tally.add(outcome);
    try {
      this.#tally.check();
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  /** Rejects the rows that wait for the others. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    for (const { reject } of this.#second.splice(0)) reject(error);
    this.#onEnd(this);
  }

  #arrived(count: number): void {
    if (count === 0) return;
    this.#left -= count;
    if (this.#left > 0) return;
    for (const { begin } of this.#second.splice(0)) begin();
    this.#onEnd(this);
  }

  #again(submit: Submit, signal: AbortSignal | undefined): Promise<readonly SampleOutcome[]> {
    const { awake } = this.#scorer;
    const { promise, resolve, reject } = Promise.withResolvers<readonly SampleOutcome[]>();
    const begin = (): void => resolve(awake(() => submit("recovery")));
    if (this.#failure !== undefined) reject(this.#failure.error);
    else if (signal?.aborted === true) reject(signal.reason);
    else this.#second.push({ begin, reject, signal });
    // The promise is awaited only after the first scoring.
    promise.catch(() => undefined);
    return promise;
  }
}

/** Once, in that lane; what is scored once more has its places in the reward log. */
type Submit = (lane: string) => Promise<readonly SampleOutcome[]>;

/** Returns the second outcome, unless only the first one has a score. Both were paid for. */
function joined(first: SampleOutcome, second: SampleOutcome): SampleOutcome {
  if (second.valid) return behind(first, second);
  if (first.valid) return behind(second, first);
  return behind(first, { ...second, error: after(earlierOf(first.error), second.error) });
}
