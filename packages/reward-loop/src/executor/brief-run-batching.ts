/**
 * Tells whether the last runs of a synchronous function were so brief that a message for each one
 * costs more than the runs themselves. Dispatcher and worker then send more samples ahead, and the
 * executor runs several in one turn of its event loop. Each of them measures for itself.
 */

/** A run that ended within this time was brief. */
const BRIEF_MS = 0.25;

/** So many brief runs without one that took longer. */
const IN_A_ROW = 16;

/** Brief runs share a turn for so long: what a thread that ends loses is no more than that. */
export const BRIEF_TURN_MS = 1;

/**
 * Brief runs are sent ahead of the one that runs, so that many go in one message: as many as take
 * this time together. Another executor may be idle for so long meanwhile.
 */
const AHEAD_MS = 16;

/**
 * The most of them that are sent ahead at first, and where a sample has a total time: it begins
 * before the sample runs. Nobody takes back what stands behind a run that takes long after all.
 */
const FEW_AHEAD = 64;

/** The most of them. Measured: a sample takes 29 us of CPU with 64, 26 with 128, 17 with 256. */
const MANY_AHEAD = 256;

/** One more than a few for so many brief runs in a row: 4,096 of them for the most. */
const PER_AHEAD = 16;

/** The share that a run has in the mean: the last few dozens count. */
const IN_MEAN = 1 / 16;

export class BriefRuns {
  #inARow = 0;
  /** How long a brief run took of late. */
  #meanMs = BRIEF_MS;
  readonly #mostAhead: number;

  /** @param hasTotalTime whether a sample's time goes on while it stands behind others */
  constructor(hasTotalTime: boolean = false) {
    this.#mostAhead = hasTotalTime ? FEW_AHEAD : MANY_AHEAD;
  }

  /** Whether the next run will probably be brief. */
  get areExpected(): boolean {
    return this.#inARow >= IN_A_ROW;
  }

  /** @param usual how many samples may be sent to an executor while its runs may take long */
  inFlight(usual: number): number {
    if (!this.areExpected) return usual;
    const ahead = Math.max(FEW_AHEAD, Math.floor(this.#inARow / PER_AHEAD));
    return Math.min(ahead, this.#mostAhead, Math.floor(AHEAD_MS / this.#meanMs));
  }

  /** A run has ended; one that was given up before it began has not. */
  ended(latencyMs: number): void {
    const isBrief = latencyMs < BRIEF_MS;
    this.#inARow = isBrief ? this.#inARow + 1 : 0;
    this.#meanMs = isBrief ? this.#meanMs + IN_MEAN * (latencyMs - this.#meanMs) : BRIEF_MS;
  }
}
