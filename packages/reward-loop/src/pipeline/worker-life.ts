/**
 * One life of a worker: its actor from the start to the death, the samples that it has, and what it
 * says of itself without being asked (pauses, spending).
 *
 * Every sample is answered, refused or lost, once. The owner decides what an error means, and
 * starts the next life.
 */

import * as ray from "@rayling/core";
import type { ActorHandle, ObjectRefGenerator } from "@rayling/core";
import { itemAt } from "@rayling/reward-manager-registry/values";
import type { SampleOutcome } from "../outcome.ts";
import { PATIENT, WHENEVER } from "../time/stuck-warning.ts";
import { NumberedItems } from "../exchange/numbered-items.ts";
import { Exchange } from "../exchange/row-exchange.ts";
import { toTables } from "../exchange/column-table.ts";
import type { RewardLoopWorker, WorkChunk } from "../worker/reward-loop-worker.ts";
import type { SpendAnswer, SpendNote } from "../worker/spend-requests.ts";
import type { SubmittedSample } from "./submitted-sample.ts";

export type WorkerHandle = ActorHandle<RewardLoopWorker>;

export interface LifeOwner {
  /** The version of the reward function that the worker has loaded. */
  readonly version: string;
  /** Whether samples overlap in its executors, as far as is known. */
  readonly overlaps: () => boolean;
  /** The worker has answered. */
  readonly heardOf: (worker: WorkerHandle) => void;
  /** Samples have their end, and take no room any more. */
  readonly release: (samples: number) => void;
  /**
   * Resolves to whether samples get no outcome, because the worker died or can score nothing any
   * more. Rejects where the loop is closed.
   */
  readonly isLost: (error: unknown, worker: WorkerHandle) => Promise<boolean>;
  /** So many samples wait for their next attempt. */
  readonly paused: (samples: number, life: WorkerLife) => void;
}

/** Streams of the worker, which it sends without being asked. */
export interface LifeReports {
  /** It has pauses: failed samples are tried again. */
  readonly pauses: boolean;
  /** Spending has a cap: the worker asks before each call. */
  readonly spending: boolean;
}

export class WorkerLife {
  readonly worker: WorkerHandle;
  readonly #owner: LifeOwner;
  readonly #exchange: Exchange<number, SampleOutcome>;
  readonly #underWay: NumberedItems<SubmittedSample> = new NumberedItems();
  /** Samples that are sent in calls of their own. */
  readonly #alone: Map<number, SubmittedSample> = new Map();
  /** Whether calls that asked in this turn may begin. */
  #answers: SpendAnswer[] = [];
  /** Samples whose calls are to be aborted by the turn's last call. */
  #givenUp: number[] = [];
  #count = 0;
  #isOver = false;

  constructor(worker: WorkerHandle, reports: LifeReports, owner: LifeOwner) {
    this.worker = worker;
    this.#owner = owner;
    this.#exchange = new Exchange<number, SampleOutcome>({
      call: (ids, isLast) => {
        const outcomes = worker.take.remote(this.#chunkOf(ids, isLast ? this.#givenUp : none));
        if (isLast) this.#givenUp = [];
        return outcomes;
      },
      alone: (id) => this.#sendAlone(id),
      arrived: (ids, outcomes) => this.#arrived(ids, outcomes),
      withheld: ({ id }) => void this.#askWhy(id),
      lost: (error) => {
        this.#isOver = true;
        void this.#unanswered([...this.#underWay.values()], error);
        this.#underWay.clear();
      },
    });
    if (reports.spending) void this.#followSpending();
    if (reports.pauses) void this.#followPauses();
  }

  /** Whether it takes no more samples. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Scores a sample, whose end is reported to it. */
  score(submitted: SubmittedSample): void {
    this.#count += 1;
    this.#underWay.set(this.#count, submitted);
    this.#exchange.push(this.#count);
  }

  /** Behind all samples that are sent in this turn: they may be part of them. */
  giveUp(signal: AbortSignal): void {
    if (this.#isOver) return;
    const before = this.#givenUp.length;
    for (const [id, submitted] of this.#underWay.entries()) {
      if (submitted.signal === signal) this.#givenUp.push(id);
    }
    for (const [id, submitted] of this.#alone) {
      if (submitted.signal === signal) this.#givenUp.push(id);
    }
    if (this.#givenUp.length > before) this.#exchange.callSoon();
  }

  #chunkOf(sent: readonly number[], givenUp: readonly number[]): WorkChunk {
    const ids: number[] = [];
    const all: SubmittedSample[] = [];
    for (const id of sent) {
      const submitted = this.#underWay.get(id);
      if (submitted === undefined) continue;
      ids.push(id);
      all.push(submitted);
    }
    const lane = all[0]?.lane ?? "";
    const isOne = all.every((one) => one.lane === lane);
    const samples = toTables(all.map(({ sample }) => sample));
    const lanes = isOne ? lane : all.map((one) => one.lane);
    const mayBeGivenUp = all.some(({ signal }) => signal !== undefined);
    return { ids, lanes, samples, mayBeGivenUp, givenUp };
  }

  #arrived(ids: readonly number[], outcomes: readonly SampleOutcome[]): void {
    let answered = 0;
    for (let at = 0; at < ids.length; at++) {
      const [id, outcome] = [itemAt(ids, at), itemAt(outcomes, at)];
      const submitted = this.#underWay.get(id);
      if (submitted === undefined) continue;
      this.#underWay.delete(id);
      submitted.answered(outcome, this.#owner.version);
      const { kept } = submitted;
      // A synchronous function makes no paid calls, and its thread must not wait.
      if (kept === undefined || !this.#owner.overlaps()) answered += 1;
      else void kept.then(() => this.#owner.release(1));
    }
    this.#owner.heardOf(this.worker);
    this.#owner.release(answered);
  }

  /** Asks why there is no outcome of a sample. */
  async #askWhy(id: number): Promise<void> {
    const submitted = this.#underWay.get(id);
    if (submitted === undefined) return;
    this.#underWay.delete(id);
    try {
      await ray.get(this.worker.outcome.remote(id));
    } catch (error) {
      await this.#unanswered([submitted], error);
    }
  }

  #sendAlone(id: number): void {
    const submitted = this.#underWay.get(id);
    if (submitted === undefined || !this.#underWay.delete(id)) return;
    this.#alone.set(id, submitted);
    void this.#scoreAlone(id, submitted).finally(() => this.#alone.delete(id));
  }

  /** Sends a sample in a call of its own, whose error names the place that cannot travel. */
  async #scoreAlone(id: number, submitted: SubmittedSample): Promise<void> {
    const { sample, lane, signal } = submitted;
    const alone = { id, lane, mayBeGivenUp: signal !== undefined };
    try {
      const outcome = await ray.get(this.worker.scoreAlone.remote(sample, alone), PATIENT);
      submitted.answered(outcome, this.#owner.version);
      this.#owner.heardOf(this.worker);
      this.#owner.release(1);
    } catch (error) {
      await this.#unanswered([submitted], error);
    }
  }

  async #unanswered(all: readonly SubmittedSample[], error: unknown): Promise<void> {
    let refusal: { readonly error: unknown } | undefined;
    try {
      if (!(await this.#owner.isLost(error, this.worker))) refusal = { error };
    } catch (closed) {
      refusal = { error: closed };
    }
    for (const one of all) {
      if (refusal === undefined) one.lost();
      else one.refused(refusal.error, this.#owner.version);
    }
    this.#owner.release(all.length);
  }

  async #followPauses(): Promise<void> {
    try {
      for await (const samples of readings(this.worker.pauses.remote())) {
        this.#owner.paused(samples, this);
      }
    } catch {
      // The worker has died; its samples are told by their exchange.
    }
  }

  async #followSpending(): Promise<void> {
    try {
      for await (const notes of readings(this.worker.spending.remote())) {
        for (const note of notes) this.#read(note);
      }
    } catch {
      // The worker has died; its samples are told by their exchange.
    }
  }

  #read(note: SpendNote): void {
    const submitted = this.#underWay.get(note.sample) ?? this.#alone.get(note.sample);
    if ("use" in note) submitted?.spent(note.use);
    else void this.#answerSpending(note.call, submitted);
  }

  /** Together with all other answers of this turn. */
  async #answerSpending(call: number, submitted: SubmittedSample | undefined): Promise<void> {
    const isAllowed = (await submitted?.maySpend()) ?? false;
    if (this.#answers.push([call, isAllowed]) > 1) return;
    process.nextTick(() => void this.#sendAnswers());
  }

  async #sendAnswers(): Promise<void> {
    const answers = this.#answers;
    this.#answers = [];
    try {
      await ray.get(this.worker.maySpend.remote(answers));
    } catch {
      // The worker has died, and its calls with it.
    }
  }
}

const none: readonly number[] = [];

/** Reads a stream that says something now and then: such waiting does not count as stuck. */
async function* readings<Reading>(stream: ObjectRefGenerator<Reading>): AsyncGenerator<Reading> {
  for (;;) {
    await ray.wait([stream], WHENEVER);
    const { done, value } = await stream.next();
    if (done === true) return;
    yield await ray.get(value);
  }
}
