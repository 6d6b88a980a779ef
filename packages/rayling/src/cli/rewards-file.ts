/** rewards.jsonl: the reward log of a run, with the names that its input has for each sample; and what a run before it left there. */

import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Writable } from "node:stream";
import { JsonlError } from "@rayling/data-proto";
import { outcomesIn, RewardLog } from "@rayling/reward-loop";
import type { RewardRecord, ScoredSample, WriterMark } from "@rayling/reward-loop";
import { CliError } from "./cli-error.ts";
import { moveAside } from "./earlier-file.ts";
import type { PastRewards } from "./past-rewards.ts";
import type { ResumedPlaces } from "./resumed-places.ts";
import type { ScoreOptions } from "./score-options.ts";
import type { SolutionSample } from "./solutions.ts";

/** Where rewards go, beside `--out`. */
export interface RewardsTarget {
  /** That nobody else writes the file. */
  readonly mark?: WriterMark | undefined;
  /** In place of a file. */
  readonly stream?: Writable | undefined;
}

/** The results that a run goes on with. */
export interface EarlierRun {
  readonly past: PastRewards;
  readonly places: ResumedPlaces;
}

interface RunFacts {
  readonly version: string;
  /** The version of the functions that are meant, behind a simulated judge. */
  readonly meant: string | undefined;
  readonly input: string | undefined;
  readonly isStream: boolean;
}

export class RewardsFile {
  readonly #log: RewardLog;
  readonly #past: PastRewards;
  readonly #places: ResumedPlaces;
  /** Of the functions that are meant, where a simulated judge in front of them is asked. */
  readonly #meant: string | undefined;
  readonly #version: string;
  /** Where the samples are; undefined: nowhere that is there later (a pipe). */
  readonly #input: string | undefined;
  readonly #isStream: boolean;
  /** So many samples that an earlier run has are not scored again. */
  readonly #kept: number;
  /** The run has said what its version hangs on, and where its samples are. */
  #hasSaid = false;

  private constructor(
    log: RewardLog,
    { past, places }: EarlierRun,
    { version, meant, input, isStream }: RunFacts,
  ) {
    this.#input = input;
    this.#isStream = isStream;
    this.#log = log;
    this.#past = past;
    this.#places = places;
    this.#version = version;
    this.#meant = meant;
    this.#kept = places.count((record) => past.isKept(record));
  }

  /**
   * Starts an empty file, beside what an earlier run has written there, or goes on with what is
   * there. Throws CliError 2 if it cannot be written.
   *
   * @param version of the loop
   */
  static async open(
    earlier: EarlierRun,
    version: string,
    options: Pick<ScoreOptions, "out" | "resume" | "latencyMs" | "texts" | "solutions">,
    { mark, stream }: RewardsTarget,
  ): Promise<RewardsFile> {
    const { out, resume, latencyMs, texts, solutions } = options;
    try {
      if (!resume && stream === undefined) await moveAside(out, "what an earlier run has scored");
      const log = await RewardLog.open(stream ?? out, {
        append: resume,
        texts,
        ...(mark === undefined ? {} : { mark }),
      });
      const meant = latencyMs === undefined ? undefined : earlier.past.now?.versions[0];
      const input = await inputOf(solutions);
      const isStream = stream !== undefined;
      return new RewardsFile(log, earlier, { version, meant, input, isStream });
    } catch (error) {
      if (!(error instanceof JsonlError)) throw error;
      throw new CliError(2, `--out: ${error.message}`, { cause: error });
    }
  }

  get path(): string {
    return this.#log.path;
  }

  /** With those of before. */
  get records(): number {
    return this.#kept + this.#log.records;
  }

  /** Samples that an earlier run has, with those that are scored again. */
  get known(): number {
    return this.#places.known;
  }

  /** Of an earlier run. */
  get kept(): number {
    return this.#kept;
  }

  /** Whether an earlier run has it, and the record that stays. */
  stateOf({ place }: SolutionSample): {
    readonly isKnown: boolean;
    readonly kept: RewardRecord | undefined;
  } {
    const record = this.#places.recordOf(place.index);
    if (record === undefined) return { isKnown: false, kept: undefined };
    return { isKnown: true, kept: this.#past.isKept(record) ? record : undefined };
  }

  async write({ sample, outcome }: ScoredSample<SolutionSample>): Promise<void> {
    const { index: inInput, questionIndex: question, solutionKey: solution } = sample.place;
    const index = this.#places.indexOf(inInput);
    const place = { index, lane: "training", version: this.#version };
    const meant = this.#meant === undefined ? {} : { version: this.#meant };
    const about = { question, solution, ...this.#aboutRun() };
    await this.#log.write(sample, { ...outcome, ...meant }, place, about);
  }

  /** Rejects with JsonlError where the file does not have what was written. */
  async close(): Promise<void> {
    await this.#log.close();
  }

  /**
   * For a run that has failed: how many samples have a record in the file as it is now, whatever
   * was written.
   */
  async count(): Promise<number> {
    await this.close().catch(() => undefined);
    if (this.#isStream) return this.records;
    const stats = await stat(this.path).catch(() => undefined);
    if (stats === undefined) return 0;
    if (!stats.isFile()) return this.records;
    try {
      return (await outcomesIn(this.path)).size;
    } catch {
      // Somebody has put something else there.
      return 0;
    }
  }

  /** In the first line that the run writes. */
  #aboutRun(): Readonly<Record<string, unknown>> {
    if (this.#hasSaid) return {};
    this.#hasSaid = true;
    const { parts = {} } = this.#past.now ?? {};
    return {
      ...(Object.keys(parts).length === 0 ? {} : { versionParts: parts }),
      ...(this.#input === undefined ? {} : { input: this.#input }),
    };
  }
}

async function inputOf(solutions: string): Promise<string | undefined> {
  const stats = await stat(solutions).catch(() => undefined);
  return stats?.isFile() === true ? resolve(solutions) : undefined;
}
