/**
 * A loop's source of outcomes with all that is done around it: the reward model is kept awake, each
 * outcome has its place in the reward log and is counted, and failed samples get their fallback.
 * Splits no batches.
 *
 * Invariant: an outcome that is kept is written before it is returned, and its slot is free then.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome } from "../outcome.ts";
import type { AskedFor, RewardSource, ScoreEnds } from "../pipeline/reward-source.ts";
import { rejection } from "../pipeline/submitted-sample.ts";
import type { OutcomeRecorder, SamplePlace } from "../record/outcome-recorder.ts";
import type { RewardModels } from "../reward-model/reward-models.ts";
import type { FailureSettings } from "../settings/policy-settings.ts";
import type { WatchedSource } from "./watched-source.ts";
import { inLane } from "../sample/lane.ts";
import { tracedSample } from "../sample/sample-trace.ts";
import type { TracedSample } from "../sample/sample-trace.ts";
import { AbortWatch } from "./abort-watch.ts";
import { AnswerCounts } from "./answer-counts.ts";
import { withFallback } from "./failures.ts";
import { LoopMetrics } from "./loop-metrics.ts";
import { ScoreRound } from "./score-round.ts";
import type { RoundOptions } from "./score-round.ts";

/** The parts of a loop that scores one sample or one group. */
export interface ScoringParts {
  readonly source: RewardSource;
  readonly onFailure: FailureSettings;
  readonly models: RewardModels;
  /** The recorder of the option `record`. */
  readonly recorder: OutcomeRecorder | undefined;
  /** The source, if it counts for the live page; undefined where the session serves none. */
  readonly watched: WatchedSource | undefined;
}

export class LoopScores {
  readonly #parts: ScoringParts;
  readonly #answers = new AnswerCounts();
  readonly #metrics = new LoopMetrics();
  readonly #watch = new AbortWatch((signal) => this.giveUp(signal));
  readonly #laneEnds = new Map<string, ScoreEnds>();
  /** Rounds with rows that were not scored yet. */
  readonly #rounds = new Set<ScoreRound>();

  constructor(parts: ScoringParts) {
    this.#parts = parts;
  }

  get onFailure(): FailureSettings {
    return this.#parts.onFailure;
  }

  /** How many samples each function has answered, where several could. */
  get answeredBy(): Record<string, number> {
    return this.#answers.counts;
  }

  /** Runs `work` with the reward model awake, if there is one. */
  awake<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#parts.models.awake(work);
  }

  /**
   * Settles as `work`, whose samples are asked for with this signal. Rejects with its reason as
   * soon as it is aborted, and gives them up.
   */
  until<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    return this.#watch.until(signal, work);
  }

  /** Opens a round of so many samples. */
  round(rows: number, options: RoundOptions, asked?: AskedFor): ScoreRound {
    this.#parts.watched?.tally.expect(rows);
    const scorer = {
      onFailure: this.onFailure,
      takePlace: (sample: RewardSample) => this.#parts.recorder?.take(sample),
      submit: (
        sample: RewardSample,
        lane: string,
        place: SamplePlace | undefined,
        ofIts: AskedFor | undefined = asked,
      ) => this.#submit(sample, lane, place, ofIts),
      submitGroup: (
        samples: readonly RewardSample[],
        lane: string,
        places: readonly (SamplePlace | undefined)[],
        ofIts: AskedFor | undefined = asked,
      ) => this.#submitGroup(samples, lane, places, ofIts),
      giveUp: (signal: AbortSignal) => this.giveUp(signal),
      spared: () => this.#parts.watched?.tally.spared(),
      awake: <Result>(work: () => Promise<Result>) => this.awake(work),
    };
    const round = new ScoreRound(scorer, { rows, ...options }, (ended) =>
      this.#rounds.delete(ended),
    );
    if (rows > 0) this.#rounds.add(round);
    return round;
  }

  /** Rejects what the rounds still wait for. */
  failRounds(error: unknown): void {
    for (const round of this.#rounds) round.fail(error);
  }

  /** Tells the live page how many samples come, outside of rounds. Undefined: nobody knows. */
  expect(samples: number | undefined): void {
    this.#parts.watched?.tally.expect(samples);
  }

  /** No async function of its own, and no closure where nothing sleeps: each sample passes here. */
  score(sample: RewardSample, lane: string, asked?: AskedFor): Promise<SampleOutcome> {
    const { recorder, models, onFailure } = this.#parts;
    const placed = inLane(sample, lane);
    const place = recorder?.take(placed);
    const outcome = models.canSleep
      ? models.awake(() => this.#submit(placed, lane, place, asked))
      : this.#submit(placed, lane, place, asked);
    if (typeof onFailure.fallback !== "number") return outcome;
    return outcome.then((one) => withFallback(one, onFailure));
  }

  async scoreGroup(
    given: readonly RewardSample[],
    lane: string,
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]> {
    const samples = given.map((sample) => inLane(sample, lane));
    const places = samples.map((sample) => this.#parts.recorder?.take(sample));
    const outcomes = await this.awake(() => this.#submitGroup(samples, lane, places, asked));
    return outcomes.map((one) => withFallback(one, this.onFailure));
  }

  /** See RewardSource. */
  giveUp(signal: AbortSignal): void {
    this.#parts.source.giveUp(signal);
  }

  /** @param place in the reward log; one that is scored once more has that of the first time */
  #submit(
    sample: RewardSample,
    lane: string,
    place: SamplePlace | undefined,
    asked?: AskedFor,
  ): Promise<SampleOutcome> {
    return place === undefined
      ? this.#ask(sample, lane, asked)
      : this.#recorded(sample, lane, place, asked);
  }

  /** No async function: each sample waits here, with no more than a promise and what ends it. */
  #ask(sample: RewardSample, lane: string, asked?: AskedFor): Promise<SampleOutcome> {
    let traced: TracedSample | undefined;
    try {
      traced = tracedSample(sample, lane);
    } catch (error) {
      // The user's tracer failed.
      return Promise.reject(error);
    }
    this.#metrics.began(lane, 1);
    const { source } = this.#parts;
    if (traced === undefined && source.scoreFor !== undefined) {
      return source.scoreFor(this.#endsOf(lane), sample, lane, asked);
    }
    const ends = traced === undefined ? this.#endsOf(lane) : this.#ends(lane, traced);
    const rejected = (error: unknown): Promise<never> => rejection(error, ends);
    try {
      return source.score(traced?.sample ?? sample, lane, asked).then(ends.settled, rejected);
    } catch (error) {
      return rejected(error);
    }
  }

  /** The ends of all samples in a lane that have no span. */
  #endsOf(lane: string): ScoreEnds {
    let ends = this.#laneEnds.get(lane);
    if (ends === undefined) this.#laneEnds.set(lane, (ends = this.#ends(lane, undefined)));
    return ends;
  }

  #ends(lane: string, traced: TracedSample | undefined): ScoreEnds {
    return {
      settled: (outcome) => {
        this.#ended(lane, outcome, traced);
        this.#answers.add(outcome);
        return outcome;
      },
      rejected: (error) => {
        this.#metrics.rejected(lane, 1);
        traced?.failed(error);
      },
    };
  }

  async #askGroup(
    samples: readonly RewardSample[],
    lane: string,
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]> {
    const traced = samples.map((sample) => tracedSample(sample, lane));
    const sent = samples.map((sample, at) => traced[at]?.sample ?? sample);
    this.#metrics.began(lane, samples.length);
    try {
      const outcomes = await this.#parts.source.scoreGroup(sent, lane, asked);
      for (const [at, outcome] of outcomes.entries()) this.#ended(lane, outcome, traced[at]);
      return outcomes;
    } catch (error) {
      this.#metrics.rejected(lane, samples.length);
      for (const one of traced) one?.failed(error);
      throw error;
    }
  }

  #ended(lane: string, outcome: SampleOutcome, traced: TracedSample | undefined): void {
    this.#metrics.ended(lane, outcome);
    traced?.ended(outcome);
  }

  async #recorded(
    sample: RewardSample,
    lane: string,
    { index, known }: SamplePlace,
    asked?: AskedFor,
  ): Promise<SampleOutcome> {
    if (known !== undefined) {
      this.#answers.add(known);
      this.#parts.watched?.tally.spared();
      return known;
    }
    const written = Promise.withResolvers<void>();
    const { kept, signal } = asked ?? {};
    const both = kept === undefined ? written.promise : written.promise.then(() => kept);
    try {
      const outcome = await this.#ask(sample, lane, { kept: both, signal });
      await this.#parts.recorder?.write(index, sample, outcome, lane);
      return outcome;
    } finally {
      written.resolve();
    }
  }

  /**
   * Asks for all of a group of which one has no score of before: scores of one call belong
   * together.
   * Where the call gives none, a score of before stays. Its lines are written at once, so that a
   * process that is killed leaves all of them or none.
   */
  async #submitGroup(
    samples: readonly RewardSample[],
    lane: string,
    places: readonly (SamplePlace | undefined)[],
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]> {
    const known = places.map((place) => place?.known);
    const scored = known.every((outcome) => outcome !== undefined)
      ? known
      : await this.#askGroup(samples, lane, asked);
    const outcomes = scored.map((outcome, at) =>
      outcome.valid ? outcome : (known[at] ?? outcome),
    );
    await Promise.all(
      samples.map(async (sample, at) => {
        const [outcome, place] = [outcomes[at], places[at]];
        if (outcome === undefined) return;
        this.#answers.add(outcome);
        if (place === undefined || outcome === place.known) return;
        await this.#parts.recorder?.write(place.index, sample, outcome, lane);
      }),
    );
    return outcomes;
  }
}
