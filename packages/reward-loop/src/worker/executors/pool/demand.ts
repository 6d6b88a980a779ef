/**
 * How many executors a worker should have: one more than there are as soon as samples wait for
 * room, or each thread is blocked, or has no moment free. Most workers never need it: an
 * asynchronous function waits for its endpoint, and one thread waits for all of its samples.
 *
 * Looks only while there is something to do, and never again once there are all.
 */

import type { SignOfLife } from "../../../executor/score-executor.ts";

/** The time between two looks: as long as starting a thread takes. */
const LOOK_MS = 100;

/** The share of the time between two looks that a thread works, if it has no moment free. */
const BUSY_SHARE = 0.9;

/** An executor, as far as it matters here. */
export interface Occupied {
  /** Samples that it has. */
  readonly load: number;
  /** Whether samples overlap in there: none waits for room while another is at work. */
  readonly overlaps: boolean;
  /** Rejects when it has died. */
  breathe(): Promise<SignOfLife>;
}

export interface DemandOwner<Executor extends Occupied> {
  /** All executors; none while one of them starts. */
  readonly executors: () => readonly Executor[];
  /** Whether samples wait for room. */
  readonly hasWaiting: () => boolean;
  /** One more is needed. */
  readonly fill: () => void;
}

/** The state of one executor between two looks. */
interface Asked {
  /** Whether it was asked for a sign of life that has not come. */
  isSilent: boolean;
  /** When it was heard of, and how long it had worked by then. */
  heard: { readonly at: number; readonly busyMs: number } | undefined;
  isBusy: boolean;
}

export class Demand<Executor extends Occupied> {
  readonly #most: number;
  readonly #owner: DemandOwner<Executor>;
  readonly #asked: WeakMap<Executor, Asked> = new WeakMap();
  #wanted: number;
  #isGrowing = false;
  #timer: NodeJS.Timeout | undefined;
  #hadWaiting = false;
  #isStopped = false;

  /**
   * @param least that are there from the start
   * @param most that there may be
   */
  constructor(least: number, most: number, owner: DemandOwner<Executor>) {
    this.#wanted = least;
    this.#most = most;
    this.#owner = owner;
  }

  /** How many executors there should be. */
  get wanted(): number {
    return this.#wanted;
  }

  /** Whether one may be started, or is being started, for samples that wait. */
  get mayHelp(): boolean {
    return this.#isGrowing || this.#wanted < this.#most;
  }

  /** A sample came. */
  came(): void {
    if (this.#timer !== undefined || this.#isStopped || this.#wanted === this.#most) return;
    this.#timer = setTimeout(() => this.#look(), LOOK_MS);
  }

  /** All that are wanted are there, or one of them cannot start now. */
  started(): void {
    this.#isGrowing = false;
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #look(): void {
    this.#timer = undefined;
    const executors = this.#owner.executors();
    const hasWaiting = this.#owner.hasWaiting();
    const haveWaited = hasWaiting && this.#hadWaiting;
    this.#hadWaiting = hasWaiting;
    const isNeeded = haveWaited || executors.every((one) => this.#isOccupied(one));
    if (executors.length > 0 && isNeeded) this.#grow();
    if (hasWaiting || executors.length === 0 || executors.some(({ load }) => load > 0)) this.came();
  }

  #grow(): void {
    this.#hadWaiting = false;
    this.#isGrowing = true;
    this.#wanted += 1;
    this.#owner.fill();
  }

  /**
   * Returns whether others would come behind what it does: it has said nothing since the last look,
   * or has worked all the time.
   */
  #isOccupied(executor: Executor): boolean {
    if (executor.load < (executor.overlaps ? 1 : 2)) return false;
    const known = this.#asked.get(executor);
    const asked = known ?? { isSilent: false, heard: undefined, isBusy: false };
    if (known === undefined) this.#asked.set(executor, asked);
    if (asked.isSilent) return true;
    void this.#ask(executor, asked);
    return asked.isBusy;
  }

  async #ask(executor: Executor, asked: Asked): Promise<void> {
    asked.isSilent = true;
    let busyMs: number;
    try {
      ({ busyMs } = await executor.breathe());
    } catch {
      // It has died, and another one takes its place.
      return;
    }
    const { heard } = asked;
    const at = performance.now();
    asked.isBusy = heard !== undefined && busyMs - heard.busyMs > BUSY_SHARE * (at - heard.at);
    asked.heard = { at, busyMs };
    asked.isSilent = false;
  }
}
