/**
 * The cost of all outcomes in a reward log, on every line: a run that resumes from it has spent it
 * already.
 */

import { readRewardLog } from "./reward-log-file.ts";
import { isOfCalls } from "./reward-record.ts";

export interface RecordedCost {
  readonly total: number;
  /** The part of the total that the substitute judge at the cap cost. */
  readonly cheaper: number;
}

const nothing: RecordedCost = { total: 0, cheaper: 0 };

export class RecordedCosts {
  readonly #byPart: Map<string, RecordedCost> = new Map();

  /**
   * Without a file nothing has been spent. Rejects with JsonlError, or RewardLogError for a line
   * that is no record.
   *
   * @param path undefined: no log
   */
  static async read(path: string | undefined): Promise<RecordedCosts> {
    const costs = new RecordedCosts();
    if (path === undefined) return costs;
    for await (const record of readRewardLog(path, { mayLack: true })) {
      const { component, cost, answeredBy } = record;
      if (typeof cost === "number" && isOfCalls(record)) {
        costs.#add(component ?? "", cost, answeredBy === "cheaper");
      }
    }
    return costs;
  }

  /**
   * @param part of several rewards or a cascade, as a record names it ("correct/judge"); "": all of
   * them together, or the only one
   */
  of(part: string): RecordedCost {
    return this.#byPart.get(part) ?? nothing;
  }

  #add(part: string, cost: number, isCheaper: boolean): void {
    const { total, cheaper } = this.of(part);
    this.#byPart.set(part, { total: total + cost, cheaper: cheaper + (isCheaper ? cost : 0) });
  }
}
