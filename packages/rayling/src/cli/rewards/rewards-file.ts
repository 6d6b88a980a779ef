/**
 * rewards.jsonl: the reward log of a run with the input's names of each sample, and the records of
 * an earlier run.
 */

import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import type { Writable } from "node:stream";
import { JsonlError } from "@rayling/data-proto";
import { outcomesIn, RewardLog } from "@rayling/reward-loop";
import type { RewardRecord, ScoredSample, WriterMark } from "@rayling/reward-loop";
import { refusalOf } from "../cli-error.ts";
import { moveAside } from "../output/existing-file.ts";
import type { PastRewards } from "../score/resume/past-rewards.ts";
import type { ResumedPlaces } from "../score/resume/resumed-places.ts";
import type { ScoreOptions } from "../score/score-options.ts";
import type { SolutionSample } from "../inputs/solutions.ts";

/** The target of rewards, beside `--out`. */
export interface RewardsTarget {
  /** The mark that keeps other runs from writing the file. */
  readonly mark?: WriterMark | undefined;
  /** The target in place of a file. */
  readonly stream?: Writable | undefined;
}

/** The results that a run continues. */
export interface EarlierRun {
  readonly past: PastRewards;
  readonly places: ResumedPlaces;
}

interface RunFacts {
  readonly version: string;
  /** The version of the functions behind a simulated judge. */
  readonly meant: string | undefined;
  readonly input: string | undefined;
  readonly isStream: boolean;
}

export class RewardsFile {
  readonly #log: RewardLog;
  readonly #past: PastRewards;
  readonly #places: ResumedPlaces;
  /** The version of the functions behind a simulated judge, if there is one. */
  readonly #meant: string | undefined;
  readonly #version: string;
  /** The path of the samples; undefined if it does not last (a pipe). */
  readonly #input: string | undefined;
  readonly #isStream: boolean;
  /** The number of samples that an earlier run has and that are not scored again. */
  readonly #kept: number;
  /** Samples without an earlier score that have one line at least. */
  #written = 0;
  /** Places in the input of samples that had a score, and have another one of this run. */
  readonly #renewed: Set<number> = new Set();
  /** Whether the run has recorded its version parts and the path of its samples. */
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
   * Starts an empty file, beside an earlier one, or continues the existing one. Throws CliError 2
   * if it cannot be written.
   *
   * @param version the version of the loop
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
      throw refusalOf(error, [JsonlError], "--out");
    }
  }

  get path(): string {
    return this.#log.path;
  }

  /** The number of records, including earlier ones. */
  get records(): number {
    return this.#kept + this.#written;
  }

  /** The number of samples that an earlier run has, including those that are scored again. */
  get known(): number {
    return this.#places.known;
  }

  /** The number of kept records of an earlier run. */
  get kept(): number {
    return this.#kept;
  }

  /** Returns whether an earlier run has the sample, and the record that stays. */
  stateOf({ place }: SolutionSample): {
    readonly isKnown: boolean;
    readonly kept: RewardRecord | undefined;
  } {
    const record = this.#places.recordOf(place.index);
    if (record === undefined) return { isKnown: false, kept: undefined };
    return { isKnown: true, kept: this.#past.isKept(record) ? record : undefined };
  }

  /** A score that a group has changed has a second line, unless the file has it already. */
  async write(scored: ScoredSample<SolutionSample>): Promise<void> {
    const { sample, outcome, given } = scored;
    const { kept } = this.stateOf(sample);
    const isThere = given !== undefined && kept !== undefined && isSaidBy(kept, scored);
    if (isThere && !this.#renewed.has(sample.place.index)) return;
    const { index: inInput, questionIndex: question, solutionKey: solution } = sample.place;
    const index = this.#places.indexOf(inInput);
    const place = { index, lane: "training", version: this.#version };
    const meant = this.#meant === undefined ? {} : { version: this.#meant };
    const scoredAs = given?.valid === true ? given.rewardScore : null;
    const ofGroup = given === undefined ? {} : { scoredAs };
    const { dataSource, label } = sample;
    const ofData = { dataSource, ...(label === undefined ? {} : { label }) };
    const about = { question, solution, ...ofData, ...ofGroup, ...this.#aboutRun() };
    if (given === undefined && kept !== undefined) this.#renewed.add(inInput);
    await this.#log.write(sample, { ...outcome, ...meant }, place, about);
    if (given === undefined && kept === undefined) this.#written += 1;
  }

  /** Rejects with JsonlError when the file differs from the written records. */
  async close(): Promise<void> {
    await this.#log.close();
  }

  /** Counts, after a failed run, the samples that have a record in the file as it is now. */
  async count(): Promise<number> {
    await this.close().catch(() => undefined);
    if (this.#isStream) return this.records;
    const stats = await stat(this.path).catch(() => undefined);
    if (stats === undefined) return 0;
    if (!stats.isFile()) return this.records;
    try {
      return (await outcomesIn(this.path)).size;
    } catch {
      // Another program replaced the file.
      return 0;
    }
  }

  /** Returns facts for the first line that the run writes. */
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

/** Whether the record says what a group made of its sample, and of which score. */
function isSaidBy(
  record: RewardRecord,
  { outcome, given }: Pick<ScoredSample, "outcome" | "given">,
): boolean {
  const scoredAs = given?.valid === true ? given.rewardScore : null;
  const score = outcome.valid ? outcome.rewardScore : null;
  const { scoredAs: before = record.score } = record;
  return before === scoredAs && record.score === score;
}

async function inputOf(solutions: string): Promise<string | undefined> {
  const stats = await stat(solutions).catch(() => undefined);
  return stats?.isFile() === true ? resolve(solutions) : undefined;
}
