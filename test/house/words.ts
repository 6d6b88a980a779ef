/**
 * Words that names no longer take, because the field has another one (docs/glossary.md): how many names in
 * `packages/*\/src` still have each, at most. The counts only go down; a word with 0 is gone.
 */
export interface BannedWord {
  /** What to write in its place. */
  readonly use: string;
  readonly most: number;
}

export const bannedWords: Readonly<Record<string, BannedWord>> = {
  arrivals: { use: "pending arguments", most: 0 },
  desk: { use: "what it does: scores, spending", most: 0 },
  door: { use: "host listener, entry", most: 0 },
  farewell: { use: "exit message", most: 0 },
  heart: { use: "heartbeat", most: 0 },
  lives: { use: "handle counts, restarts", most: 0 },
  pace: { use: "slow-peer guard, rate", most: 0 },
  patience: { use: "timeout", most: 0 },
  purse: { use: "budget", most: 0 },
  seat: { use: "slot, worker", most: 0 },
  told: { use: "reported, logged", most: 0 },
  vigil: { use: "spin wait", most: 0 },
  ways: { use: "channels", most: 0 },
};

/** The words of a name, of a file or an identifier: `WorkerSeat`, `worker-seat` and `WORKER_SEAT` are alike. */
export function wordsOf(name: string): string[] {
  const words = name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? [];
  return words.map((word) => word.toLowerCase());
}
