/**
 * Results of tests of samples that a service failed at midway, for the next attempt of the sample
 * in this thread: their programs are not sent again.
 */

import { createHash } from "node:crypto";
import type { CodeTestResult } from "./code-tests.ts";

/** More are of attempts that never came. */
const mostSamples = 1000;

export class KeptTests {
  readonly #results: Map<string, readonly CodeTestResult[]> = new Map();

  /** Returns the results that were kept, once. */
  take(response: string, groundTruth: unknown): readonly CodeTestResult[] {
    if (this.#results.size === 0) return [];
    const key = keyOf(response, groundTruth);
    const results = this.#results.get(key) ?? [];
    this.#results.delete(key);
    return results;
  }

  /** Keeps results without what the programs wrote, which may be much. */
  keep(response: string, groundTruth: unknown, results: readonly CodeTestResult[]): void {
    if (results.length === 0) return;
    const brief = results.map((one) => ({ ...one, stdout: null, stderr: null }));
    this.#results.set(keyOf(response, groundTruth), brief);
    for (const oldest of this.#results.keys()) {
      if (this.#results.size <= mostSamples) break;
      this.#results.delete(oldest);
    }
  }
}

function keyOf(response: string, groundTruth: unknown): string {
  const text = JSON.stringify([response, groundTruth]);
  return createHash("sha256").update(text).digest("base64");
}
