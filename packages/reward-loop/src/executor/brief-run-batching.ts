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

/** Brief runs that are sent ahead of the one that runs, so that many go in one message. */
const BRIEF_IN_FLIGHT = 64;

export class BriefRuns {
  #inARow = 0;

  /** Whether the next run will probably be brief. */
  get areExpected(): boolean {
    return this.#inARow >= IN_A_ROW;
  }

  /** @param usual how many samples may be sent to an executor while its runs may take long */
  inFlight(usual: number): number {
    return this.areExpected ? BRIEF_IN_FLIGHT : usual;
  }

  ended(latencyMs: number): void {
    this.#inARow = latencyMs < BRIEF_MS ? this.#inARow + 1 : 0;
  }
}
