/** Calls of actors per second, by how many each present life has run at two looks. */

interface Counted {
  readonly actorId: string;
  readonly executedCalls?: number | undefined;
}

/** Two looks must lie so far apart, in ms, for a new rate. */
const leastMs = 500;

export class CallRate {
  readonly #now: () => number;
  #counts: ReadonlyMap<string, number> | undefined;
  #atMs = 0;
  #rate: number | undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Returns the rate since the look before; undefined at the first one. */
  add(rows: readonly Counted[]): number | undefined {
    const now = this.#now();
    const passedMs = now - this.#atMs;
    if (this.#counts !== undefined && passedMs < leastMs) return this.#rate;
    const counts = new Map(
      rows.flatMap(({ actorId, executedCalls: count }) =>
        count === undefined ? [] : [[actorId, count] as const],
      ),
    );
    if (this.#counts !== undefined) this.#rate = sinceOf(this.#counts, counts) / (passedMs / 1000);
    this.#counts = counts;
    this.#atMs = now;
    return this.#rate;
  }
}

/** A new life counts from 0. */
function sinceOf(before: ReadonlyMap<string, number>, now: ReadonlyMap<string, number>): number {
  let calls = 0;
  for (const [actorId, count] of now) {
    const known = before.get(actorId) ?? 0;
    calls += count >= known ? count - known : count;
  }
  return calls;
}
