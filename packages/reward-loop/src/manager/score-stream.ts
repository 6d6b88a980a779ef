/**
 * Samples in, outcomes out as they finish: reads its input only as fast as there is room, and never lets room wait for a batch.
 * Ends by the end of the input, by the first failure of the loop or of the input, by the signal, or when the consumer leaves.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { ScoredSample } from "../outcome.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { ProgressCounter } from "./progress.ts";
import type { RewardProgress } from "./progress.ts";

export interface ScoreStreamOptions {
  /** Called every `progressEveryMs` while the stream is read, and once at the end. */
  readonly onProgress?: ((progress: RewardProgress) => void) | undefined;
  /** Default 100 ms: ten pictures a second. */
  readonly progressEveryMs?: number | undefined;
  /** How many samples there are, for the progress. Known by itself for arrays. */
  readonly total?: number | undefined;
  /** Stops the stream: it rejects with the signal's reason. What is in flight is finished by the workers and dropped. */
  readonly signal?: AbortSignal | undefined;
}

type Input<Sample> = Iterable<Sample> | AsyncIterable<Sample>;

export async function* scoreStream<Sample extends RewardSample>(
  samples: Input<Sample>,
  dispatcher: Dispatcher,
  options: ScoreStreamOptions = {},
): AsyncGenerator<ScoredSample<Sample>, void, undefined> {
  const { onProgress, progressEveryMs = 100, signal } = options;
  signal?.throwIfAborted();
  const counter = new ProgressCounter(
    options.total ?? (Array.isArray(samples) ? samples.length : undefined),
  );
  const source = iteratorOf(samples);
  const finished: ScoredSample<Sample>[] = [];
  let failure: { readonly error: unknown } | undefined;
  let state = "idle" as "idle" | "reading" | "exhausted";
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
      if (next.done !== true) void send(next.value, count++);
      else counter.total = count;
    } catch (error) {
      fail(error);
    }
    wake.resolve();
  };
  const send = async (sample: Sample, index: number): Promise<void> => {
    counter.started(index);
    try {
      const outcome = await dispatcher.submit(sample);
      counter.finished(index, outcome);
      finished.push({ index, sample, outcome });
      wake.resolve();
    } catch (error) {
      fail(error);
    }
  };
  const onAbort = (): void => fail(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer = onProgress && setInterval(() => onProgress(counter.snapshot()), progressEveryMs);
  try {
    for (;;) {
      wake = Promise.withResolvers();
      const ready = finished.splice(0);
      for (const one of ready) yield one;
      if (failure !== undefined) throw failure.error;
      if (state === "idle" && counter.inFlight < dispatcher.slots) void read();
      if (ready.length > 0 || finished.length > 0) continue;
      if (state === "exhausted" && counter.inFlight === 0) return;
      await wake.promise;
    }
  } finally {
    clearInterval(timer);
    signal?.removeEventListener("abort", onAbort);
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
    next: () => Promise.resolve(iterator.next()),
    return: () => Promise.resolve(iterator.return?.() ?? { done: true, value: undefined }),
  };
}
