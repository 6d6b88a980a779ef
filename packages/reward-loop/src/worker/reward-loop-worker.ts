/**
 * verl's RewardLoopWorker: takes samples one by one or as a chunk of a batch, keeps at most `concurrency` of them going, gives back
 * outcomes in order. It coordinates and runs no user code, so it answers while its executors are blocked or dead.
 */

import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import type { DataProtoData } from "@rayling/data-proto";
import type { RewardSample } from "@rayling/reward-manager-registry";
import pLimit from "p-limit";
import type { LimitFunction } from "p-limit";
import { samplesOf } from "../batch/rows.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { ExecutorSettings } from "../settings.ts";
import { ExecutorPool } from "./executor-pool.ts";

export class RewardLoopWorker {
  readonly #pool: ExecutorPool;
  readonly #limit: LimitFunction;

  /** @param executorName its executors are called this and a number */
  constructor(settings: ExecutorSettings, executorName: string) {
    this.#limit = pLimit(settings.concurrency);
    this.#pool = new ExecutorPool(settings, (count) => `${executorName}${count}`);
  }

  /** Resolves when all executors have loaded the user's modules; rejects with why they cannot. */
  async ready(): Promise<void> {
    await this.#pool.ready();
  }

  /** Whether it is worth having more samples here than executors: not with a synchronous score function. */
  async overlaps(): Promise<boolean> {
    return this.#pool.overlaps;
  }

  /** Rejects only if no executor can be kept alive: ExecutorStartError, or why the user's modules do not load. */
  async computeScore(sample: RewardSample): Promise<SampleOutcome> {
    return this.#limit(() => this.#pool.submit(sample));
  }

  /** One outcome per row, in order. Takes `DataProto.toData()`. Rejects also with InvalidBatchError. */
  async computeScoreBatch(data: DataProtoData): Promise<SampleOutcome[]> {
    const samples = samplesOf(DataProto.fromData(data));
    return Promise.all(samples.map((sample) => this.computeScore(sample)));
  }
}

/** A thread, whatever the session's default: workers and executors share the table of what runs. */
export const RewardLoopWorkerActor: ray.ActorClass<typeof RewardLoopWorker> = ray.remote(
  RewardLoopWorker,
  { isolation: "thread" },
);
