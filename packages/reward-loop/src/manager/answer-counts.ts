/**
 * Counts the samples that each function answered, where several could: stages of a cascade, judges
 * before and behind a cap.
 */

import type { SampleOutcome } from "../outcome.ts";

export class AnswerCounts {
  readonly #counts: Map<string, number> = new Map();

  get counts(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  add(outcome: SampleOutcome): void {
    if (outcome.answeredBy === undefined && outcome.components === undefined) return;
    for (const name of answersOf(outcome))
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }
}

/**
 * Returns the names of the answering functions: "judge" in a cascade alone, "correct/judge" in one
 * among several rewards. Invalid parts are left out.
 */
export function answersOf(outcome: SampleOutcome, within: string = ""): string[] {
  if (outcome.answeredBy !== undefined) return [`${within}${outcome.answeredBy}`];
  return Object.entries(outcome.components ?? {}).flatMap(([name, part]) =>
    part.valid ? answersOf(part, `${within}${name}/`) : [],
  );
}
