/**
 * Outcomes of a batch as JSON lines, in the order in which they come: each line is one sample, with
 * its place in the request.
 */

import { HttpRefusal } from "@rayling/core/http";
import type { Served } from "./served-scores.ts";

/**
 * A sample's outcome as a member of an answer.
 *
 * @param about what stands before it: its index, its id
 */
export function outcomeText(
  { text, isReplayed }: Pick<Served, "text" | "isReplayed">,
  about: Readonly<Record<string, unknown>>,
): string {
  const more = isReplayed ? { ...about, replayed: true } : about;
  const before = JSON.stringify(more);
  return before === "{}" ? text : `${before.slice(0, -1)},${text.slice(1)}`;
}

/**
 * Why a sample of a stream has no outcome: the status of the answer is sent by then. It was not
 * recorded, and may be asked for again.
 */
export function notScored(error: unknown): string {
  const code = error instanceof HttpRefusal ? error.code : "not_scored";
  const message = error instanceof HttpRefusal ? error.message : "the server failed";
  return JSON.stringify({
    score: null,
    valid: false,
    error: { code, message, class: "infrastructure" },
    extra: {},
  });
}

/**
 * Yields what has come since the last time, as one text. Ends when all have come.
 *
 * @param lines each resolves to its line, and never rejects
 */
export async function* asTheyCome(lines: readonly Promise<string>[]): AsyncGenerator<string> {
  let arrived: string[] = [];
  let left = lines.length;
  let wake = Promise.withResolvers<void>();
  for (const line of lines) {
    void line.then((text) => {
      arrived.push(text);
      left -= 1;
      wake.resolve();
    });
  }
  for (;;) {
    await wake.promise;
    const texts = arrived;
    arrived = [];
    const isLast = left === 0;
    wake = Promise.withResolvers<void>();
    if (texts.length > 0) yield `${texts.join("\n")}\n`;
    if (isLast) return;
    // Lines may have come while the reader had its turn.
    if (arrived.length > 0) wake.resolve();
  }
}
