/**
 * A judge of additions who takes his time, by chance. 1 for the right sum, to the letter.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { ScoreInput } from "@rayling/reward-manager-registry";
import { uniformOf } from "../values/random.ts";

/** How slow the judge is, in memory that he shares with the thread that sets it. */
export class JudgeLatency {
  readonly buffer: SharedArrayBuffer;
  /** Milliseconds of the slowest answer, and the answers since that was set. */
  readonly #cells: Float64Array;

  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(16)) {
    this.buffer = buffer;
    this.#cells = new Float64Array(buffer);
  }

  /** From now on; the draws begin anew, so that trainings wait for the same. */
  set(latencyMs: number): void {
    this.#cells.set([latencyMs, 0]);
  }

  /** Milliseconds that the next answer takes. One thread draws. */
  draw(): number {
    const [latencyMs = 0, asked = 0] = this.#cells;
    this.#cells[1] = asked + 1;
    return latencyMs * uniformOf(1, asked);
  }
}

/** @param input.latency the buffer of a JudgeLatency; without it there is no wait */
export async function computeScore(input: ScoreInput): Promise<number> {
  const { solutionStr, groundTruth, latency, signal } = input;
  const waitMs = latency instanceof SharedArrayBuffer ? new JudgeLatency(latency).draw() : 0;
  if (waitMs > 0) await delay(waitMs, undefined, signal === undefined ? {} : { signal });
  return solutionStr === groundTruth ? 1 : 0;
}
