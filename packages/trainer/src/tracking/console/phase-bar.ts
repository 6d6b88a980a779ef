/**
 * The times of a step's phases as a bar of letters and in words: `[ggggrrruu] gen 4.0 s, reward 3.1
 * s, update_actor 2.0 s ...`.
 */

import { fitted } from "./fitted.ts";
import { spanText } from "./time-left.ts";

/** Columns of a bar: fewer on a narrow terminal. */
const barColumns = (width: number): number => (width < 90 ? 12 : 24);

/**
 * @param running the current phase, and for how long it has run
 * @param width of the line
 */
export function phaseBar(
  spent: ReadonlyMap<string, number>,
  running: { readonly name: string; readonly ms: number } | undefined,
  width: number,
): string {
  const columns = barColumns(width);
  const phases = new Map(spent);
  if (running !== undefined) phases.set(running.name, (phases.get(running.name) ?? 0) + running.ms);
  const totalMs = [...phases.values()].reduce((sum, ms) => sum + ms, 0);
  const letters = lettersOf([...phases.keys()]);
  let [bar, untilMs] = ["", 0];
  for (const [name, ms] of phases) {
    untilMs += ms;
    const end = totalMs > 0 ? Math.round((columns * untilMs) / totalMs) : 0;
    bar = bar.padEnd(end, letters.get(name));
  }
  const words = [...phases].map(
    ([name, ms]) => `${name} ${spanText(ms)}${name === running?.name ? " ..." : ""}`,
  );
  return `[${bar.padEnd(columns)}] ${fitted(words, width - columns - 3)}`;
}

/** Draws the share that is done. @param width of the line */
export function progressBar(share: number, width: number): string {
  const columns = barColumns(width);
  const filled = Math.floor(columns * Math.min(1, Math.max(0, share)));
  return `[${"#".repeat(filled)}${"-".repeat(columns - filled)}]`;
}

/** The first letter of a name that no other has: update_critic and update_actor are two. */
function lettersOf(names: readonly string[]): ReadonlyMap<string, string> {
  const letters = new Map<string, string>();
  const taken = new Set<string>();
  for (const name of names) {
    const letter = (name + name.toUpperCase()).match(/\w/g)?.find((one) => !taken.has(one)) ?? "?";
    taken.add(letter);
    letters.set(name, letter);
  }
  return letters;
}
