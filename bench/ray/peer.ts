/** Ray's side of the rows: rows.py runs one row after another as it is told. */
import { type Rate, type RatePlan, rateOf } from "../measure/rates.ts";
import { RayProcess } from "./process.ts";

interface Greeting {
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: readonly string[];
}

interface Answer {
  readonly rates?: readonly number[];
  readonly error?: string;
}

export class RayPeer {
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: ReadonlySet<string>;
  readonly #process: RayProcess;

  /** Resolves when Ray runs. */
  static async start(python: string): Promise<RayPeer> {
    return new RayPeer(await RayProcess.start(python, new URL("./rows.py", import.meta.url)));
  }

  private constructor(process: RayProcess) {
    const { versions, rows } = process.greeting as Greeting;
    this.#process = process;
    this.versions = versions;
    this.rows = new Set(rows);
  }

  async measure(row: string, plan: RatePlan): Promise<Rate> {
    const order = {
      row,
      warmUpS: plan.warmUpMs / 1000,
      rounds: plan.rounds,
      roundS: plan.roundMs / 1000,
    };
    const { rates, error } = (await this.#process.ask(order)) as Answer;
    if (rates === undefined) throw new Error(`Ray, ${row}: ${error ?? "no rates"}`);
    return rateOf(rates);
  }

  /** Resolves when no process of Ray is left. Idempotent. */
  close(): Promise<void> {
    return this.#process.close();
  }
}
