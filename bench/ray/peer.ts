/** Ray's side of the rows: rows.py runs one row after another as it is told. */
import { type Rate, type RatePlan, rateOf } from "../measure/rates.ts";
import { field, numbers, text } from "../measure/printed.ts";
import { RayProcess } from "./process.ts";

export class RayPeer {
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: ReadonlySet<string>;
  readonly #process: RayProcess;

  /** Resolves when Ray runs. */
  static async start(python: string): Promise<RayPeer> {
    return new RayPeer(await RayProcess.start(python, new URL("./rows.py", import.meta.url)));
  }

  private constructor(process: RayProcess) {
    const versions = Object.entries(Object(field(process.greeting, "versions")));
    const rows = field(process.greeting, "rows");
    this.#process = process;
    this.versions = Object.fromEntries(versions.map(([name, one]) => [name, text(one)]));
    this.rows = new Set(Array.isArray(rows) ? rows.map((row: unknown) => text(row)) : []);
  }

  async measure(row: string, plan: RatePlan): Promise<Rate> {
    const order = {
      row,
      warmUpS: plan.warmUpMs / 1000,
      rounds: plan.rounds,
      roundS: plan.roundMs / 1000,
    };
    const answer = await this.#process.ask(order);
    const error = field(answer, "error");
    if (error !== undefined) throw new Error(`Ray, ${row}: ${text(error)}`);
    return rateOf(numbers(field(answer, "rates")));
  }

  /** Resolves when no process of Ray is left. Idempotent. */
  close(): Promise<void> {
    return this.#process.close();
  }
}
