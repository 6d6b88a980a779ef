/**
 * Samples in, outcomes out as they finish: reads its input only as fast as there is room, and never lets room wait for a batch.
 * Ends by the end of the input, by the first failure of the loop or of the input, by the signal, or when the consumer leaves.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome, ScoredSample } from "../outcome.ts";
import type { RewardSource } from "./reward-source.ts";
import { ProgressCounter } from "./progress.ts";
import type { RewardProgress, WatchedLoop } from "./progress.ts";

export interface ScoreStreamOptions<Sample extends RewardSample = RewardSample> {
  /**
   * Takes each outcome as soon as it is there, before it is yielded: outcomes that are kept here
   * are not lost with a process that is killed. Until it resolves the sample is in flight; the
   * stream rejects with what it rejects with.
   */
  readonly onOutcome?: ((scored: ScoredSample<Sample>) => Promise<void>) | undefined;
  /** Called every `progressEveryMs` while the stream is read, and once at the end. */
  readonly onProgress?: ((progress: RewardProgress) => void) | undefined;
  /** Default 100 ms: ten pictures a second. */
  readonly progressEveryMs?: number | undefined;
  /** How many samples there are, for the progress. Known by itself for arrays. */
  readonly total?: number | undefined;
  /** Whose share of workers and endpoint it takes: "training" (default), "validation", or any other. */
  readonly lane?: string | undefined;
  /** Stops the reading: what is in flight is finished and yielded, and then the stream ends. */
  readonly drain?: AbortSignal | undefined;
  /** Stops the stream: it rejects with the signal's reason. What is in flight is finished by the workers and dropped. */
  readonly signal?: AbortSignal | undefined;
}

type Input<Sample> = Iterable<Sample> | AsyncIterable<Sample>;

export async function* scoreStream<Sample extends RewardSample>(
  samples: Input<Sample>,
  room: Pick<RewardSource, "hasRoom" | "onRoom">,
  score: (sample: Sample, lane: string) => Promise<SampleOutcome>,
  options: ScoreStreamOptions<Sample> & { readonly watched?: WatchedLoop } = {},
): AsyncGenerator<ScoredSample<Sample>, void, undefined> {
  const {
    onProgress,
    progressEveryMs = 100,
    lane = "training",
    signal,
    drain,
    onOutcome,
  } = options;
  signal?.throwIfAborted();
  const counter = new ProgressCounter(
    options.total ?? (Array.isArray(samples) ? samples.length : undefined),
    options.watched,
  );
  const source = iteratorOf(samples);
  const finished: ScoredSample<Sample>[] = [];
  let failure: { readonly error: unknown } | undefined;
  let state = "idle" as "idle" | "reading" | "exhausted";
  let isDraining = drain?.aborted === true;
  let count = 0;
  let wake = Promise.withResolvers<void>();

  const fail = (error: unknown): void => {
    failure ??= { error };
    wake.resolve();
  };
  const read = async (): Promise<void> => {
    state = "reading";
    try {
      const next = await source.next();
      state = next.done === true ? "exhausted" : "idle";
      if (next.done === true) counter.total = count;
      else if (!isDraining) void send(next.value, count++);
    } catch (error) {
      state = "exhausted";
      // Of an input that nobody wants more of it does not matter how it ends.
      if (!isDraining) fail(error);
    }
    wake.resolve();
  };
  const send = async (sample: Sample, index: number): Promise<void> => {
    counter.started(index);
    try {
      const outcome = await score(sample, lane);
      await onOutcome?.({ index, sample, outcome });
      counter.finished(index, outcome);
      finished.push({ index, sample, outcome });
      wake.resolve();
    } catch (error) {
      fail(error);
    }
  };
  const onAbort = (): void => fail(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const onDrain = (): void => {
    isDraining = true;
    wake.resolve();
  };
  drain?.addEventListener("abort", onDrain, { once: true });
  const stopListening = room.onRoom(() => wake.resolve());
  const picture = (): void => {
    void counter.look();
    onProgress?.(counter.snapshot());
  };
  const timer = onProgress && setInterval(picture, progressEveryMs);
  if (onProgress !== undefined) void counter.look();
  try {
    for (;;) {
      wake = Promise.withResolvers();
      const ready = finished.splice(0);
      for (const one of ready) yield one;
      if (failure !== undefined) throw failure.error;
      if (state === "idle" && !isDraining && room.hasRoom) void read();
      if (ready.length > 0 || finished.length > 0) continue;
      if ((state === "exhausted" || isDraining) && counter.inFlight === 0) return;
      await wake.promise;
    }
  } finally {
    clearInterval(timer);
    stopListening();
    signal?.removeEventListener("abort", onAbort);
    drain?.removeEventListener("abort", onDrain);
    onProgress?.(counter.snapshot());
    // An input that is a file closes it. One that hangs in a read cannot be waited for.
    if (state === "idle") await source.return?.();
    else if (state === "reading") void source.return?.();
  }
}

function iteratorOf<Sample>(samples: Input<Sample>): AsyncIterator<Sample> {
  if (Symbol.asyncIterator in samples) return samples[Symbol.asyncIterator]();
  const iterator = samples[Symbol.iterator]();
  return {
    // One that throws at once rejects, as any other.
    next: async () => iterator.next(),
    return: () => Promise.resolve(iterator.return?.() ?? { done: true, value: undefined }),
  };
}
