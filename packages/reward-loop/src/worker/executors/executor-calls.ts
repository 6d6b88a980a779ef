/**
 * The calls to one executor: its start, the samples that go together, the runs that go alone, and
 * the asking for signs of life. Knows no deadlines: its owner hears of every answer, and once of
 * the executor's death.
 */

import * as ray from "@rayling/core";
import type { ActorHandle, DeathCause, ObjectRef } from "@rayling/core";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { itemAt } from "@rayling/reward-manager-registry/values";
import type { RunTablePlace } from "../../executor/run-table/run-table.ts";
import { ScoreExecutorActor } from "../../executor/score-executor.ts";
import type { ScoreReply } from "../../executor/run.ts";
import type { LoadedExecutor, ScoreExecutor, SignOfLife } from "../../executor/score-executor.ts";
import type { TokenUsage } from "../../outcome.ts";
import type { ExecutorSettings } from "../../settings/settings.ts";
import { PATIENT } from "../../time/stuck-warning.ts";
import { Exchange } from "../../exchange/row-exchange.ts";
import { mostOpen } from "../../exchange/result-outbox.ts";
import type { NumberedRows } from "../../exchange/result-outbox.ts";
import { toTables } from "../../exchange/column-table.ts";
import type { SentRun } from "./sent-runs.ts";
import { endActor } from "../end-actor.ts";

/**
 * Calls beside those for one run each: the open ones of the exchange, which are at most half as
 * many, and those that ask for signs of life and for replies. None of them waits for another.
 */
const mostCalls = 2 * mostOpen;

const none: readonly number[] = [];

export interface CallsOwner {
  /** Finds a run that has not been answered. */
  find(id: number): SentRun | undefined;
  /** @param reply a ScoreReply, or the error of the runtime */
  answered(run: SentRun, reply: unknown): void;
  /** Runs were answered: there may be room. */
  changed(): void;
  /** The calls that are pending get no answer. */
  died(cause: DeathCause): void;
  /** The executor has not died, and will answer no run that was sent with others. */
  silent(error: unknown): void;
}

export interface ExecutorPlace {
  readonly name: string;
  readonly table: RunTablePlace;
  /** Runs that may be in there at once. */
  readonly slots: number;
}

export class ExecutorCalls {
  readonly #actor: ActorHandle<ScoreExecutor>;
  readonly #exchange: Exchange<SentRun, ScoreReply, TokenUsage | undefined>;
  readonly #owner: CallsOwner;
  /** The id and the slot, in turn, of each run that is to be aborted by the turn's last call. */
  #aborted: number[] = [];

  /** Starts the executor. */
  constructor(
    settings: ExecutorSettings,
    { name, table, slots }: ExecutorPlace,
    owner: CallsOwner,
  ) {
    const { isolation, resourceLimits, concurrency, policy, version } = settings;
    this.#owner = owner;
    this.#actor = ScoreExecutorActor.options({
      name,
      isolation,
      // The worker reads the executor's table: both must be on this machine.
      schedulingStrategy: {
        kind: "NODE_AFFINITY",
        nodeId: ray.getRuntimeContext().getNodeId(),
      },
      maxConcurrency: slots + mostCalls,
      ...(resourceLimits === undefined ? {} : { runtimeEnv: { resourceLimits } }),
    }).remote(settings.pipeline, table, concurrency, { ofEndpoint: policy.limits, version });
    this.#exchange = new Exchange({
      call: (runs, isLast) => this.#take(runs, isLast),
      alone: (run) => this.#alone(run),
      arrived: (ids, replies) => this.#arrived(ids, replies),
      withheld: ({ id, note }) => this.#withheld(id, note),
      lost: (error) => {
        const cause = deathCauseOf(error);
        if (cause === undefined) owner.silent(error);
        else owner.died(cause);
      },
    });
  }

  /** Rejects with why the user's modules cannot be loaded, or with GetTimeoutError. */
  ready(timeoutMs: number): Promise<LoadedExecutor> {
    return ray.get(this.#actor.ready.remote(), { timeoutMs });
  }

  /** A sample goes with others; other work goes alone. */
  send(run: SentRun): void {
    if (run.job.sample !== undefined) this.#exchange.push(run);
    else this.#alone(run);
  }

  /** Aborts the run's signal, behind all that is sent in this turn: the run may be part of it. */
  abort({ id, slot }: SentRun): void {
    this.#aborted.push(id, slot);
    this.#exchange.callSoon();
  }

  /** Rejects when the executor has died. */
  breathe(): Promise<SignOfLife> {
    return ray.get(this.#actor.breathe.remote());
  }

  kill(): Promise<void> {
    return endActor(this.#actor);
  }

  #take(
    runs: readonly SentRun[],
    isLast: boolean,
  ): ObjectRef<NumberedRows<ScoreReply, TokenUsage | undefined>> {
    const ids: number[] = [];
    const slots: number[] = [];
    const first: number[] = [];
    const samples: RewardSample[] = [];
    for (const { id, slot, job } of runs) {
      if (job.sample === undefined) continue;
      ids.push(id);
      slots.push(slot);
      samples.push(job.sample);
      if (job.isSecond) first.push(id);
    }
    const aborted = isLast ? this.#aborted : none;
    const results = this.#actor.take.remote({
      ids,
      slots,
      first,
      aborted,
      samples: toTables(samples),
    });
    if (isLast) this.#aborted = [];
    return results;
  }

  #arrived(ids: readonly number[], replies: readonly ScoreReply[]): void {
    for (let at = 0; at < ids.length; at++) {
      const [id, reply] = [itemAt(ids, at), itemAt(replies, at)];
      const run = this.#owner.find(id);
      if (run === undefined) continue;
      if (reply.used !== undefined) run.note({ used: reply.used });
      this.#owner.answered(run, reply);
    }
    this.#owner.changed();
  }

  /** Asks for a reply that is big, or that cannot travel at all. */
  #withheld(id: number, used: TokenUsage | undefined): void {
    const run = this.#owner.find(id);
    if (run === undefined) return;
    if (used !== undefined) run.note({ used });
    void this.#answer(run, () => this.#actor.reply.remote(id));
  }

  #alone(run: SentRun): void {
    const { id, slot, job } = run;
    const { sample, work } = job;
    if (sample !== undefined) {
      void this.#answer(run, () => this.#actor.score.remote(id, slot, sample));
    } else if (work !== undefined) {
      void this.#answer(run, () => this.#actor.run.remote(id, slot, work));
    }
  }

  /** Makes a call for a single run. */
  async #answer(run: SentRun, call: () => ObjectRef<ScoreReply | undefined>): Promise<void> {
    try {
      this.#owner.answered(run, await ray.get(call(), PATIENT));
    } catch (error) {
      const cause = deathCauseOf(error);
      if (cause !== undefined) return this.#owner.died(cause);
      this.#owner.answered(run, error);
    }
    this.#owner.changed();
  }
}

/** Undefined for an error that is not the executor's death. */
export function deathCauseOf(error: unknown): DeathCause | undefined {
  return error instanceof ray.ActorDiedError ? error.deathCause : undefined;
}
