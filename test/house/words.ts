/** Words that names do not take, because the field has another one (docs/glossary.md): what to write in place of each. */
export const bannedWords: Readonly<Record<string, string>> = {
  arrivals: "pending arguments",
  desk: "what it does: scores, spending",
  door: "host listener, entry",
  farewell: "goodbye",
  heart: "heartbeat",
  lives: "handle counts, restarts",
  pace: "slow-peer guard, rate",
  patience: "timeout",
  purse: "budget",
  seat: "slot, worker",
  told: "reported, logged",
  vigil: "spin wait",
  ways: "channels",
};

/** The words of a name, of a file or an identifier: `WorkerSeat`, `worker-seat` and `WORKER_SEAT` are alike. */
export function wordsOf(name: string): string[] {
  const words = name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? [];
  return words.map((word) => word.toLowerCase());
}
