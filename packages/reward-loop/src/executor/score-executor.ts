/**
 * The actor in whose thread or process the user's code runs: one score at a time if it is synchronous, many if it waits.
 * It may be blocked or dead at any moment; what is known of it then stands in the run table. Knows no deadlines and no other executor.
 */

import { setTimeout as delay } from "node:timers/promises";
import { setImmediate as turn } from "node:timers/promises";
import * as ray from "@rayling/core";
import type { RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { announcements } from "../client/announced.ts";
import type { AnnouncedLimits } from "../faults/rate-limit-headers.ts";
import { failureOf } from "../outcome.ts";
import type { ScoreFailure } from "../outcome.ts";
import { rewardVersion } from "../record/reward-version.ts";
import { digestOf } from "../record/sample-key.ts";
import type { PipelineSettings } from "../settings.ts";
import { Outbox } from "../travel/outbox.ts";
import type { NumberedRows } from "../travel/outbox.ts";
import { sendable } from "../travel/sendable.ts";
import { fromTables } from "../travel/table.ts";
import type { Table } from "../travel/table.ts";
import { loadPipeline } from "./pipeline.ts";
import type { Pipeline } from "./pipeline.ts";
import type { RunTablePlace } from "./run-table.ts";
import { runTableAt } from "./run-tables.ts";
import { RunTracker } from "./run-tracker.ts";
import type { Run } from "./run-tracker.ts";
import { runWork } from "./score-work.ts";
import type { ScoreWork } from "./score-work.ts";

/** What one run came to. */
export type ScoreReply = {
  readonly latencyMs: number;
  readonly overlaps: boolean;
  /** What its endpoint said of its limits, where a client told. */
  readonly announced?: AnnouncedLimits;
} & (
  | ({ readonly ok: true } & RewardResult)
  | { readonly ok: false; readonly error: ScoreFailure }
  /** It is big, or cannot travel at all, and has to be asked for: `reply`. */
  | { readonly ok: undefined }
);

/** So many samples under their ids, each with its slot of the run table. */
export interface SampleChunk {
  readonly ids: readonly number[];
  readonly slots: readonly number[];
  readonly samples: readonly Table[];
}

/** What is known of the user's functions when they are loaded. */
export interface ExecutorTraits {
  /** Whether samples overlap in one thread. */
  readonly overlaps: boolean;
  readonly postProcesses: boolean;
  readonly logs: boolean;
  /** Whether the manager says where the scores of a batch stand. */
  readonly assembles: boolean;
}

/** Of functions that are not loaded yet, or that there are none of. */
export const noTraits: ExecutorTraits = {
  overlaps: false,
  postProcesses: false,
  logs: false,
  assembles: false,
};

export interface LoadedExecutor extends ExecutorTraits {
  /** Of the reward function as it was loaded there. */
  readonly version: string;
}

export class ScoreExecutor {
  readonly #tracker: RunTracker;
  readonly #pipeline: Promise<Pipeline>;
  readonly #version: Promise<string>;
  /** Known once it is ready. */
  #loaded: Pipeline | undefined;
  /** At work. */
  readonly #runs: Map<number, Run> = new Map();
  /** Behind one that may hold the thread. */
  #waiting: Given[] = [];
  #isHeld = false;
  readonly #outbox: Outbox<ScoreReply> = new Outbox();
  /** That are asked for one by one. */
  readonly #kept: Map<number, ScoreReply> = new Map();

  constructor(settings: PipelineSettings, place: RunTablePlace) {
    const table = runTableAt(place);
    this.#tracker = new RunTracker(table);
    announcements.subscribe((announced) => {
      const { current } = this.#tracker;
      if (current !== undefined) current.announced = announced as AnnouncedLimits;
    });
    // Before the handlers of the user's modules, which may take their time.
    process.prependListener("exit", () => table.exiting());
    const before = rewardVersion(settings);
    this.#pipeline = before.then(() => loadPipeline(settings, this.#tracker));
    this.#version = this.#pipeline.then(async () => {
      const after = await rewardVersion(settings);
      // Written while it was loaded: it is neither.
      return (await before) === after ? after : digestOf([await before, after]);
    });
    // Whoever calls ready() hears of it.
    this.#version.catch(() => undefined);
  }

  /** Resolves when the user's modules are loaded; rejects with why they are not. */
  async ready(): Promise<LoadedExecutor> {
    this.#loaded = await this.#pipeline;
    const { overlaps, postProcessScores, log, assembleRmScores } = this.#loaded;
    return {
      version: await this.#version,
      overlaps,
      postProcesses: postProcessScores !== undefined,
      logs: log !== undefined,
      assembles: assembleRmScores !== undefined,
    };
  }

  /** Begins them, of which there may be none, and resolves to what is ready by then, of these and of others. Not before it is ready. */
  async take({ ids, slots, samples }: SampleChunk): Promise<NumberedRows> {
    for (const [at, sample] of fromTables(samples).entries()) {
      const work = { kind: "sample", sample: sample as RewardSample } as const;
      this.#waiting.push({ id: ids[at] as number, slot: slots[at] as number, work });
    }
    this.#begin();
    return this.#outbox.exchange(ids.length);
  }

  /** One that has to be asked for: once. Rejects with NotEncodableError if it cannot travel. */
  reply(id: number): ScoreReply | undefined {
    const reply = this.#kept.get(id);
    this.#kept.delete(id);
    return reply;
  }

  /** What else there is to do for the user's functions. A result that cannot travel rejects with NotEncodableError. */
  async run(id: number, slot: number, work: ScoreWork): Promise<ScoreReply> {
    return this.#run(await this.#pipeline, { id, slot, work });
  }

  #begin(): void {
    const pipeline = this.#loaded;
    if (pipeline === undefined) throw new Error("samples came before the user's modules");
    while (!this.#isHeld) {
      const given = this.#waiting.shift();
      if (given === undefined) return;
      void this.#score(pipeline, given);
      if (pipeline.overlaps) continue;
      // What it came to leaves before the next one holds the thread.
      this.#isHeld = true;
      setImmediate(() =>
        setImmediate(() => {
          this.#isHeld = false;
          this.#begin();
        }),
      );
    }
  }

  async #score(pipeline: Pipeline, given: Given): Promise<void> {
    const { id } = given;
    let said: Said | undefined;
    const reply = await this.#run(pipeline, given, ({ rewardExtraInfo }) => {
      said = sendable(rewardExtraInfo);
    });
    if (reply.ok === true && said !== undefined) {
      this.#outbox.push(id, { ...reply, rewardExtraInfo: said });
    } else if (reply.ok === false && sendable(reply.error as unknown as Said) !== undefined) {
      this.#outbox.push(id, reply);
    } else {
      this.#kept.set(id, reply);
      this.#outbox.push(id, { ok: undefined, latencyMs: 0, overlaps: reply.overlaps });
    }
  }

  /** @param look at what it came to, on its account */
  async #run(
    pipeline: Pipeline,
    { id, slot, work }: Given,
    look: (result: RewardResult) => void = ignore,
  ): Promise<ScoreReply> {
    const run: Run = {
      id,
      slot,
      depth: 0,
      startedAt: undefined,
      abort: undefined,
      isAborted: false,
      announced: undefined,
    };
    this.#runs.set(id, run);
    const measured = (): Pick<ScoreReply, "latencyMs" | "overlaps" | "announced"> => {
      const now = performance.now();
      const { startedAt = now, announced } = run;
      const told = announced === undefined ? {} : { announced };
      return { latencyMs: now - startedAt, overlaps: pipeline.overlaps, ...told };
    };
    try {
      const { rewardScore, rewardExtraInfo } = await this.#tracker.follow(run, async () => {
        const result = await runWork(pipeline, work);
        look(result);
        return result;
      });
      return { ok: true, rewardScore, rewardExtraInfo, ...measured() };
    } catch (error) {
      return { ok: false, error: failureOf(error), ...measured() };
    } finally {
      this.#runs.delete(id);
    }
  }

  /** Nobody waits for that run any more: its signal says so. */
  abort(id: number): void {
    const run = this.#runs.get(id);
    if (run === undefined) return;
    run.isAborted = true;
    run.abort?.abort();
  }

  /** Answers after a full turn of the event loop: every timer that was due and every answer that had come was heard. */
  async breathe(): Promise<void> {
    await delay(1);
    await turn();
  }
}

interface Given {
  readonly id: number;
  readonly slot: number;
  readonly work: ScoreWork;
}

type Said = Readonly<Record<string, unknown>>;

function ignore(): void {}

/** A thread unless its options say otherwise. */
export const ScoreExecutorActor: ray.ActorClass<typeof ScoreExecutor> = ray.remote(ScoreExecutor, {
  isolation: "thread",
});
