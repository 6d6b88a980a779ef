/**
 * One batch that an AsyncRewardAgent was asked for: its samples on their way, its groups as they become whole, and who waits for them.
 *
 * Groups come out in the order in which their slowest samples are done, each once and whole; who asked first is served first. If the loop fails, whoever waits hears why.
 */

import type { DataProto } from "@rayling/data-proto";
import type { RewardSample, ScoreLogEntry } from "@rayling/reward-manager-registry";
import { responseShape, samplesOf } from "../batch/rows.ts";
import type { ResponseShape } from "../batch/rows.ts";
import { InvalidBatchError } from "../errors.ts";
import type { RewardLoopManager } from "../manager/reward-loop-manager.ts";
import type { SampleOutcome } from "../outcome.ts";

interface Group {
  readonly uid: string;
  readonly rows: readonly number[];
  left: number;
}

interface Waiter {
  readonly size: number;
  readonly rows: number[];
  readonly resolve: (rows: number[]) => void;
  readonly reject: (error: unknown) => void;
}

type LogLists = { readonly [Key in keyof ScoreLogEntry]: ScoreLogEntry[Key][number][] };

export class RewardRequest {
  readonly shape: ResponseShape;
  readonly outcomes: SampleOutcome[];
  readonly #loop: RewardLoopManager;
  readonly #lane: string;
  readonly #groupOf: readonly Group[];
  /** Whole and put right, in their order; taken by waiters as they are there. */
  #done: Promise<readonly number[]>[] = [];
  #waiters: Waiter[] = [];
  #failure: { readonly error: unknown } | undefined;
  readonly #log: LogLists = {
    timestamps: [],
    queries: [],
    responses: [],
    results: [],
    latenciesMs: [],
    groupUids: [],
  };
  /** Rows that nobody has asked for yet. */
  #unasked: number;

  /** Throws InvalidBatchError, also where a group has not `groupSize` rows. */
  constructor(loop: RewardLoopManager, data: DataProto, groupSize: number, lane: string) {
    this.#loop = loop;
    this.#lane = lane;
    this.shape = responseShape(data);
    const samples = samplesOf(data);
    this.#groupOf = groupsOf(data, groupSize);
    this.outcomes = Array<SampleOutcome>(samples.length);
    this.#unasked = samples.length;
    const sentMs = performance.now();
    const scored = samples.map((sample, row) => this.#score(sample, row, groupSize, sentMs));
    if (loop.traits.logs) void this.#tellLog(scored);
  }

  get unasked(): number {
    return this.#unasked;
  }

  /** Rows of whole groups, sorted. Rejects with why the loop has failed. @param size at most `unasked` */
  take(size: number): Promise<number[]> {
    this.#unasked -= size;
    return new Promise((resolve, reject) => {
      this.#waiters.push({ size, rows: [], resolve, reject });
      void this.#serve();
    });
  }

  async #score(
    sample: RewardSample,
    row: number,
    groupSize: number,
    sentMs: number,
  ): Promise<void> {
    const group = this.#groupOf[row] as Group;
    const extraInfo = { group_uid: group.uid, group_size: groupSize, ...sample.extraInfo };
    try {
      const outcome = await this.#loop.computeScore({ ...sample, extraInfo }, { lane: this.#lane });
      this.outcomes[row] = outcome;
      this.#note(outcome, group.uid, sentMs);
    } catch (error) {
      return this.#fail(error);
    }
    group.left -= 1;
    if (group.left > 0) return;
    this.#done.push(this.#putRight(group));
    await this.#serve();
  }

  /** By the user's postProcessScores: the valid ones; if that fails they are not valid either. */
  async #putRight({ rows }: Group): Promise<readonly number[]> {
    if (!this.#loop.traits.postProcesses) return rows;
    const valid = rows.flatMap((row) => {
      const outcome = this.outcomes[row];
      return outcome?.valid === true ? [{ row, outcome }] : [];
    });
    if (valid.length === 0) return rows;
    const after = await this.#loop.postProcessScores(
      valid.map(({ outcome }) => outcome.rewardScore),
    );
    for (const [index, { row, outcome }] of valid.entries()) {
      const { attempts, latencyMs, waitedMs } = outcome;
      this.outcomes[row] = after.valid
        ? { ...outcome, rewardScore: after.scores[index] as number }
        : { valid: false, error: after.error, attempts, latencyMs, waitedMs };
    }
    return rows;
  }

  #isServing = false;

  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      while (this.#waiters.length > 0 && this.#done.length > 0) {
        const [group] = this.#done.splice(0, 1);
        const rows = (await group) ?? [];
        const [waiter] = this.#waiters;
        waiter?.rows.push(...rows);
        if (waiter === undefined || waiter.rows.length < waiter.size) continue;
        this.#waiters.shift();
        waiter.resolve(waiter.rows.toSorted((a, b) => a - b));
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isServing = false;
    }
    if (this.#failure !== undefined) this.#fail(this.#failure.error);
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const { reject } of waiters) reject(this.#failure.error);
  }

  #note(outcome: SampleOutcome, uid: string, sentMs: number): void {
    const { timestamps, queries, responses, results, latenciesMs, groupUids } = this.#log;
    const extra = outcome.valid ? outcome.rewardExtraInfo : {};
    timestamps.push(new Date().toISOString());
    queries.push(extra["query"] ?? null);
    responses.push(extra["response"] ?? null);
    results.push(outcome.valid ? outcome.rewardScore : null);
    latenciesMs.push(performance.now() - sentMs);
    groupUids.push(uid);
  }

  async #tellLog(scored: readonly Promise<void>[]): Promise<void> {
    await Promise.all(scored);
    if (this.#failure !== undefined) return;
    const told = await this.#loop.log(this.#log).catch((error: unknown) => ({ error }));
    if ("valid" in told && told.valid) return;
    const { message } = told.error as { readonly message: string };
    process.emitWarning(`the reward function's log failed: ${message}`, "RaylingWarning");
  }
}

/** By row. */
function groupsOf(data: DataProto, groupSize: number): Group[] {
  const uids = data.nonTensorBatch["uid"] ?? rowsAsGroups(data, groupSize);
  const rowsOf = new Map<string, number[]>();
  for (const [row, uid] of uids.entries()) {
    const key = String(uid);
    const rows = rowsOf.get(key);
    if (rows === undefined) rowsOf.set(key, [row]);
    else rows.push(row);
  }
  const groups = new Map(
    [...rowsOf].map(([uid, rows]) => {
      if (rows.length !== groupSize) {
        throw new InvalidBatchError("uid", `"${uid}" has ${rows.length} rows, not ${groupSize}`);
      }
      return [uid, { uid, rows, left: rows.length }];
    }),
  );
  return uids.map((uid) => groups.get(String(uid)) as Group);
}

/** Groups of one need no names. */
function rowsAsGroups(data: DataProto, groupSize: number): string[] {
  if (groupSize !== 1) throw new InvalidBatchError("uid", "is missing");
  return Array.from({ length: data.length }, (_, row) => String(row));
}
