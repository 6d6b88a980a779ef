/**
 * Samples in, outcomes out as they finish: reads its input only as fast as there is room, and never
 * lets room wait for a batch. Ends by the end of the input, by the first failure of the loop or of
 * the input, by the signal, or when the consumer leaves.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome, ScoredSample } from "../../outcome.ts";
import type { AskedFor, RewardSource } from "../../pipeline/reward-source.ts";
import { Flattened } from "./flattened.ts";
import { ProgressCounter } from "./score-progress.ts";
import type { RewardProgress, WatchedLoop } from "./score-progress.ts";
import { StreamInput } from "./stream-input.ts";
import type { Samples } from "./stream-input.ts";
import { GroupGathering } from "./stream-groups.ts";
import type { Member, StreamGroups, Unit } from "./stream-groups.ts";
import { StreamSamples } from "./stream-samples.ts";

/** How a stream of samples is scored. */
export interface ScoreStreamOptions<Sample extends RewardSample = RewardSample> {
  /**
   * Takes each outcome as soon as it is there, before it is yielded: outcomes that are kept here
   * are not lost with a process that is killed. Until it resolves the sample is in flight; the
   * stream rejects with what it rejects with. With `groups` it is called again, with `given`, for
   * a sample of which its group made something else, and for one that is known from before.
   */
  readonly onOutcome?: ((scored: ScoredSample<Sample>) => Promise<void>) | undefined;
  /**
   * Scores the answers to one prompt as a group: at once where the function takes them so, put
   * right by postProcessScores and `onFailure.fallback: "groupMean"` when all are scored, and
   * yielded then. Default: each sample is a group of one, and is not put right.
   */
  readonly groups?: StreamGroups<Sample> | undefined;
  /** Called every `progressEveryMs` while the stream is read, and once at the end. */
  readonly onProgress?: ((progress: RewardProgress) => void) | undefined;
  /** Default 100 ms: ten pictures a second. */
  readonly progressEveryMs?: number | undefined;
  /** How many samples there are, for the progress. Known by itself for arrays. */
  readonly total?: number | undefined;
  /**
   * The lane in which it shares workers and endpoint: "training" (default), "validation", or any
   * other.
   */
  readonly lane?: string | undefined;
  /**
   * Stops the reading: what is in flight is finished and yielded, and then the stream ends. Samples
   * that wait for the rest of their group are not scored; those that are scored stay as they are.
   */
  readonly drain?: AbortSignal | undefined;
  /**
   * Stops the stream: it rejects with the signal's reason. Samples that stand in line are not
   * begun, and calls in flight are aborted, by the signal that their function has. The stream is
   * left in the same way by a reader that ends early, and after an error.
   */
  readonly signal?: AbortSignal | undefined;
}

/** The loop as a stream sees it. All reject as RewardLoopManager.computeScore. */
export interface StreamScorer {
  /** Tells whether there is room for a sample. */
  readonly room: Pick<RewardSource, "hasRoomFor" | "onRoom">;
  readonly score: (sample: RewardSample, lane: string, asked: AskedFor) => Promise<SampleOutcome>;
  /** Whether the function scores whole groups. */
  readonly scoresGroups: boolean;
  readonly scoreGroup: (
    samples: readonly RewardSample[],
    lane: string,
    asked: AskedFor,
  ) => Promise<readonly SampleOutcome[]>;
  /** Gives up what was asked for with this signal, which was aborted. */
  readonly giveUp: (signal: AbortSignal) => void;
  /** Undefined: it changes nothing. */
  readonly putRight:
    | ((outcomes: readonly SampleOutcome[]) => Promise<readonly SampleOutcome[]>)
    | undefined;
  readonly watched: WatchedLoop;
}

export function scoreStream<Sample extends RewardSample>(
  samples: Samples<Sample>,
  scorer: StreamScorer,
  options: ScoreStreamOptions<Sample> = {},
): AsyncGenerator<ScoredSample<Sample>, void, undefined> {
  return new Flattened(new ScoreStream(samples, scorer, options).run());
}

/** Samples that are read in one turn: each takes its room at once, but for what has to wait. */
const READ_PER_TURN = 32;

class ScoreStream<Sample extends RewardSample> {
  readonly #input: StreamInput<Sample>;
  readonly #scorer: StreamScorer;
  readonly #options: ScoreStreamOptions<Sample>;
  readonly #lane: string;
  /** Undefined: nobody looks. */
  readonly #counter: ProgressCounter | undefined;
  readonly #gathering: GroupGathering<Sample> | undefined;
  #finished: ScoredSample<Sample>[] = [];
  #failure: { readonly error: unknown } | undefined;
  readonly #samples: StreamSamples;
  #isDraining: boolean;
  /** Samples of the input so far, and those of them that have no outcome of before. */
  #read = 0;
  #asked = 0;
  /** Samples and groups that are being scored or put right. */
  #underWay = 0;
  /** Something has happened since the stream looked last. */
  #isAwake = false;
  #resume: (() => void) | undefined;

  constructor(samples: Samples<Sample>, scorer: StreamScorer, options: ScoreStreamOptions<Sample>) {
    const { groups, lane = "training", drain } = options;
    this.#input = new StreamInput(samples, {
      arrived: (sample) => {
        if (!this.#isDraining) this.#take(sample);
        this.#wake();
      },
      ended: () => {
        if (this.#counter !== undefined) this.#counter.total = this.#asked;
        this.#gathering?.end();
        this.#wake();
      },
      failed: (error) => {
        // Errors of an input that is no longer needed are ignored.
        if (this.#isDraining) this.#wake();
        else this.#fail(error);
      },
    });
    this.#scorer = scorer;
    this.#samples = new StreamSamples(scorer.giveUp);
    this.#options = options;
    this.#lane = lane;
    this.#isDraining = drain?.aborted === true;
    if (options.onProgress !== undefined) {
      const total = options.total ?? (Array.isArray(samples) ? samples.length : undefined);
      this.#counter = new ProgressCounter(total, scorer.watched);
    }
    this.#gathering = groups && new GroupGathering(groups, scorer.scoresGroups);
  }

  /** Yields what is finished, all that there is at a time. */
  async *run(): AsyncGenerator<readonly ScoredSample<Sample>[], void, undefined> {
    this.#options.signal?.throwIfAborted();
    const stop = this.#listen();
    try {
      for (;;) {
        this.#isAwake = false;
        const ready = this.#finished;
        if (ready.length > 0) {
          this.#finished = [];
          yield ready;
        }
        if (this.#failure !== undefined) throw this.#failure.error;
        if (this.#beginMany() || ready.length > 0 || this.#finished.length > 0) continue;
        if (this.#isOver) break;
        // A turn in any case, in which what was begun takes its room.
        await (this.#isAwake ? undefined : this.#awakened());
      }
      yield (this.#gathering?.leave() ?? []).map((one) => scoredOf(one));
    } finally {
      stop();
      if (this.#underWay > 0) {
        this.#samples.giveUp(new DOMException("the stream was left", "AbortError"));
      }
      await this.#input.close();
    }
  }

  #wake(): void {
    this.#isAwake = true;
    this.#resume?.();
    this.#resume = undefined;
  }

  #awakened(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  get #isOver(): boolean {
    if (this.#underWay > 0 || this.#failure !== undefined) return false;
    if (this.#isDraining) return true;
    return this.#input.isExhausted && this.#gathering?.isEmpty !== false;
  }

  /** @returns what ends it */
  #listen(): () => void {
    const { signal, drain, onProgress, progressEveryMs = 100 } = this.#options;
    const onAbort = (): void => this.#fail(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    const onDrain = (): void => {
      this.#isDraining = true;
      this.#wake();
    };
    drain?.addEventListener("abort", onDrain, { once: true });
    const stopListening = this.#scorer.room.onRoom(() => this.#wake());
    const counter = this.#counter;
    const tell = (): void => {
      if (counter !== undefined) onProgress?.(counter.snapshot());
    };
    const picture = (): void => {
      void counter?.look();
      tell();
    };
    const timer = counter && setInterval(picture, progressEveryMs);
    void counter?.look();
    return () => {
      clearInterval(timer);
      stopListening();
      signal?.removeEventListener("abort", onAbort);
      drain?.removeEventListener("abort", onDrain);
      tell();
    };
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    // At once: the reader may look at the stream much later.
    this.#samples.giveUp(this.#failure.error);
    this.#wake();
  }

  /**
   * Begins what there is room for: samples and groups that wait, and the next ones of the input.
   *
   * @returns whether one was begun that had waited, so that others may
   */
  #beginMany(): boolean {
    for (let read = 0; read < READ_PER_TURN; read++) {
      if (this.#isDraining || !this.#scorer.room.hasRoomFor(this.#lane)) return false;
      const unit = this.#gathering?.next();
      if (unit !== undefined) {
        void this.#sendUnit(unit);
        return true;
      }
      if (this.#failure !== undefined || !this.#input.isIdle) return false;
      this.#input.read();
    }
    return false;
  }

  #take(sample: Sample): void {
    const index = this.#read++;
    if (this.#options.groups?.known?.(sample) === undefined) this.#asked += 1;
    if (this.#gathering === undefined) void this.#send(sample, index);
    else this.#gathering.add(index, sample);
  }

  async #send(sample: Sample, index: number): Promise<void> {
    const { onOutcome } = this.#options;
    this.#underWay += 1;
    this.#counter?.started(index);
    const kept = this.#keeping();
    try {
      const outcome = await this.#scorer.score(
        sample,
        this.#lane,
        this.#samples.askedFor(kept?.promise),
      );
      const scored = { index, sample, outcome };
      if (onOutcome !== undefined) await onOutcome(scored);
      this.#counter?.finished(index, outcome);
      this.#finished.push(scored);
      this.#wake();
    } catch (error) {
      this.#fail(error);
    } finally {
      kept?.resolve();
      this.#underWay -= 1;
    }
  }

  /** Returns the promise of storing an outcome, which frees its slot, if outcomes are stored. */
  #keeping(): PromiseWithResolvers<void> | undefined {
    return this.#options.onOutcome && Promise.withResolvers();
  }

  async #sendUnit(unit: Unit<Sample>): Promise<void> {
    this.#underWay += 1;
    try {
      await this.#scoreUnit(unit);
      if (this.#gathering?.scored(unit) === true) await this.#finish(unit.group.members);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#underWay -= 1;
      this.#wake();
    }
  }

  /** Gives each member its outcome, and that to `onOutcome` where it is a new one. */
  async #scoreUnit({ members }: Unit<Sample>): Promise<void> {
    const { scoresGroups, scoreGroup, score } = this.#scorer;
    const asked = members.filter(({ known }) => known === undefined);
    for (const { index } of asked) this.#counter?.started(index);
    const samples = members.map(({ sample }) => sample);
    const kept = this.#keeping();
    const wanted = this.#samples.askedFor(kept?.promise);
    try {
      const outcomes =
        asked.length === 0
          ? []
          : scoresGroups
            ? await scoreGroup(samples, this.#lane, wanted)
            : await Promise.all(samples.map((one) => score(one, this.#lane, wanted)));
      await this.#keep(members, outcomes);
    } finally {
      kept?.resolve();
    }
  }

  async #keep(
    members: readonly Member<Sample>[],
    outcomes: readonly SampleOutcome[],
  ): Promise<void> {
    await Promise.all(
      members.map(async (member, at) => {
        const { index, known } = member;
        member.outcome = latest(outcomes[at], known);
        if (member.outcome !== known) await this.#options.onOutcome?.(scoredOf(member));
        if (known === undefined) this.#counter?.finished(index, scoredOf(member).outcome);
      }),
    );
  }

  /** A group that is over: what it comes to as one. */
  async #finish(members: readonly Member<Sample>[]): Promise<void> {
    const { putRight } = this.#scorer;
    const own = members.map((one) => scoredOf(one));
    if (putRight === undefined) return void this.#finished.push(...own);
    const after = await putRight(own.map(({ outcome }) => outcome));
    const scored = own.map((one, at): ScoredSample<Sample> => {
      const outcome = after[at] ?? one.outcome;
      return { ...one, outcome, given: one.outcome };
    });
    const reported = scored.filter(
      (one, at) => members[at]?.known !== undefined || !isSame(one.outcome, one.given),
    );
    await Promise.all(reported.map(async (one) => this.#options.onOutcome?.(one)));
    this.#finished.push(
      ...scored.map((one, at) => (isSame(one.outcome, one.given) ? (own[at] ?? one) : one)),
    );
  }
}

/** The scores of one call belong together; where it has none a score of before stays. */
function latest(
  now: SampleOutcome | undefined,
  known: SampleOutcome | undefined,
): SampleOutcome | undefined {
  return now?.valid === true ? now : (known ?? now);
}

function scoredOf<Sample extends RewardSample>({
  index,
  sample,
  outcome,
}: Member<Sample>): ScoredSample<Sample> {
  if (outcome === undefined) throw new Error(`sample ${index} has no outcome`);
  return { index, sample, outcome };
}

/** postProcessScores gives all scores of its group back, changed or not. */
function isSame(one: SampleOutcome, other: SampleOutcome | undefined): boolean {
  if (one === other) return true;
  return one.valid && other?.valid === true && one.rewardScore === other.rewardScore;
}
