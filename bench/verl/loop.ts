/**
 * verl's own reward loop under real Ray, in as many workers as verl has by default: loop.py runs it
 * and says what of it is verl's.
 *
 * It offers the arrangements that verl has. Its naive manager knows no bound: every sample of a
 * step is under way at once. Its rate_limited manager has one for each worker, here so that all of
 * them together have the slots that everybody has.
 */
import { field, numbers, text } from "../measure/printed.ts";
import { mustImport } from "../ray/python.ts";
import { RayProcess } from "../ray/process.ts";

interface Arrangement {
  readonly name: string;
  /**
   * Runs a loop from its start to its end, and returns the time of each step. A step is the ms that
   * each of its samples waits.
   */
  run(steps: readonly (readonly number[])[]): Promise<readonly number[]>;
}

export class VerlLoop {
  readonly versions: Readonly<Record<"verl" | "ray" | "torch" | "python", string>>;
  readonly #workers: number;
  readonly #process: RayProcess;

  /**
   * Resolves when Ray runs.
   *
   * @throws NoRayError saying what the interpreter lacks
   */
  static async start(python: string): Promise<VerlLoop> {
    await mustImport(python, ["ray", "torch", "verl.experimental.reward_loop"]);
    return new VerlLoop(await RayProcess.start(python, new URL("./loop.py", import.meta.url)));
  }

  private constructor(process: RayProcess) {
    const versions = field(process.greeting, "versions");
    this.versions = {
      verl: text(field(versions, "verl")),
      ray: text(field(versions, "ray")),
      torch: text(field(versions, "torch")),
      python: text(field(versions, "python")),
    };
    this.#workers = Number(field(process.greeting, "workers"));
    this.#process = process;
  }

  arrangements(slots: number): readonly Arrangement[] {
    const each = Math.floor(slots / this.#workers);
    return [
      this.#arrangement(`${each} a worker`, { manager: "rate_limited", maxConcurrent: each }),
      this.#arrangement("no bound", { manager: "naive" }),
    ];
  }

  /** Resolves when no process of Ray is left. Idempotent. */
  close(): Promise<void> {
    return this.#process.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #arrangement(bound: string, order: object): Arrangement {
    const { verl, ray } = this.versions;
    const name = `verl ${verl} under Ray ${ray}, ${this.#workers} workers, ${bound}`;
    return {
      name,
      run: async (steps) => {
        const whole = { ...order, workers: this.#workers, steps };
        const answer = await this.#process.ask(whole);
        const error = field(answer, "error");
        if (error !== undefined) throw new Error(`${name}: ${text(error)}`);
        return numbers(field(answer, "ms"));
      },
    };
  }
}
