/**
 * A reward that takes as long as a judge's took: its latency is drawn by the answer, so all
 * arrangements wait for the same. A call that is begun beside another one draws again. Beside it a
 * rule that knows right answers at once, and cannot tell for others.
 */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { ScoreInput } from "@rayling/reward-manager-registry";

/** A distribution of latencies, in seconds. */
export type Latency =
  | { readonly kind: "uniform"; readonly from: number; readonly to: number }
  /** A heavy tail: exp of a normal with that sigma, and that mean. */
  | { readonly kind: "lognormal"; readonly mean: number; readonly sigma: number };

export interface JudgeSettings {
  readonly latency: Latency;
  readonly scale: number;
  /**
   * Calls at once that it takes; more of them it refuses with 429. Counted in `inFlight`, one
   * Int32.
   */
  readonly capacity?: number;
  readonly inFlight?: SharedArrayBuffer;
  /** Where its calls for the training are counted: a `CallCounts`. */
  readonly counts: SharedArrayBuffer;
}

/** Calls of the judge, by all threads, and how long they took together in microseconds. */
export class CallCounts {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(16)) {
    this.buffer = buffer;
    this.#cells = new BigInt64Array(buffer);
  }

  get calls(): number {
    return Number(Atomics.load(this.#cells, 0));
  }

  get busyMs(): number {
    return Number(Atomics.load(this.#cells, 1)) / 1000;
  }

  add(durationMs: number): void {
    Atomics.add(this.#cells, 0, 1n);
    Atomics.add(this.#cells, 1, BigInt(Math.round(durationMs * 1000)));
  }
}

/** A score with the text that it is for, as a number, to compare runs by. */
export interface Verdict {
  readonly score: number;
  readonly said: number;
}

/** Tells that an answer is the right one, and nothing else. */
export function rule(input: ScoreInput): Verdict | null {
  return input.solutionStr === input.groundTruth ? verdictOf(input) : null;
}

export async function judge(input: ScoreInput): Promise<Verdict> {
  // The answer names its prompt. The name of the group would be its context, and no score is kept
  // of which that was read.
  const { solutionStr: name } = input;
  const beside = running.get(name) ?? 0;
  running.set(name, beside + 1);
  try {
    const { settings } = input;
    if (!isSettings(settings)) throw new TypeError("the judge was given no settings");
    await answer(`${name} ${beside}`, settings, input);
    return verdictOf(input);
  } finally {
    if (beside === 0) running.delete(name);
  }
}

function isSettings(value: unknown): value is JudgeSettings {
  return (
    typeof value === "object" &&
    value !== null &&
    "latency" in value &&
    "scale" in value &&
    typeof value.scale === "number" &&
    "counts" in value
  );
}

/** Calls for each sample that are under way. */
const running = new Map<string, number>();

function verdictOf({ solutionStr, groundTruth }: ScoreInput): Verdict {
  const said = createHash("sha256").update(solutionStr).digest().readUInt32LE(0);
  return { score: solutionStr === groundTruth ? 1 : 0, said };
}

/**
 * Rejects when nobody waits any more, and takes no room from then on, as a request that is cut off.
 */
async function answer(
  name: string,
  settings: JudgeSettings,
  { signal, groundTruth }: ScoreInput,
): Promise<void> {
  const { latency, scale, capacity, inFlight } = settings;
  const draws = createHash("sha256").update(name).digest();
  const [first, second] = [draws.readUInt32LE(0) / 2 ** 32, draws.readUInt32LE(4) / 2 ** 32];
  const wantedMs = (secondsOf(latency, first, second) * 1000) / scale;
  const count = inFlight === undefined ? undefined : new Int32Array(inFlight);
  try {
    if (count !== undefined && Atomics.add(count, 0, 1) >= (capacity ?? Infinity)) throw new Busy();
    const startMs = performance.now();
    try {
      await wait(wantedMs, signal);
    } finally {
      // A validation is no part of the steps' calls.
      const isTraining = typeof groundTruth === "string" && groundTruth.includes("train");
      if (isTraining) new CallCounts(settings.counts).add(performance.now() - startMs);
    }
  } finally {
    if (count !== undefined) Atomics.sub(count, 0, 1);
  }
}

class Busy extends Error {
  readonly status = 429;

  constructor() {
    super("the judge has no room");
  }
}

function secondsOf(latency: Latency, first: number, second: number): number {
  if (latency.kind === "uniform") return latency.from + (latency.to - latency.from) * first;
  const normal = Math.sqrt(-2 * Math.log(1 - first)) * Math.cos(2 * Math.PI * second);
  const { mean, sigma } = latency;
  return mean * Math.exp(sigma * normal - sigma ** 2 / 2);
}

/**
 * By how much timers are late on average, which is taken off what they are asked for: a timer is
 * good to a millisecond, and thousands of samples must come to the right sum.
 */
let lateMs = 0.5;

async function wait(wantedMs: number, signal: AbortSignal | undefined): Promise<void> {
  const startMs = performance.now();
  const asked = Math.max(0, wantedMs - lateMs);
  const whole = Math.floor(asked + draw());
  await delay(whole, undefined, signal === undefined ? {} : { signal });
  const late = performance.now() - startMs - asked;
  lateMs = Math.min(50, Math.max(0, lateMs + (late - lateMs) * 0.01));
}

let state = 1;

/** From 0 to 1: which of two whole milliseconds. */
function draw(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
}
