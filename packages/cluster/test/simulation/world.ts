/**
 * A simulated world: one clock, one line of events, one seed.
 *
 * The globals that code waits with (`setTimeout`, `setImmediate`, `process.hrtime`, `performance.now`, `Math.random`, node:timers/promises) and the runtime's own timers are the world's while one is installed. Nothing
 * takes any time but what is scheduled, so a minute of the world passes in milliseconds, and the same seed gives the same run. Every event belongs to a
 * process: one that is busy does not see its events until it is not, and one that has ended never does.
 */
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { syncBuiltinESMExports } from "node:module";
import timersPromises from "node:timers/promises";
import { timers as published } from "@rayling/core/cluster";
import { timers } from "../../../core/src/shared/machine/timers.ts";
import { Random } from "./random.ts";

/** Where tests run what is published, the code of cluster has another copy of core. */
const copies = new Set([timers, published]);

/** What runs on a machine: code belongs to the process in whose context it was started. */
export interface Process {
  readonly name: string;
  isAlive: boolean;
  /** It computes until then, and sees nothing. */
  busyUntilMs: number;
}

type Run = () => void;

interface Event {
  atMs: number;
  order: number;
  run: Run | undefined;
  readonly process: Process | undefined;
}

const running: AsyncLocalStorage<Process> = new AsyncLocalStorage();

/** The process whose code runs. */
export function currentProcess(): Process | undefined {
  return running.getStore();
}

export function inProcess<T>(process: Process, run: () => T): T {
  return running.run(process, run);
}

let world: World | undefined;

function setWorld(next: World | undefined): void {
  world = next;
}

/** The one that is installed. */
export function currentWorld(): World {
  if (world === undefined) throw new Error("no world is installed");
  return world;
}

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  random: Math.random,
  timers: { ...timers },
  pause: timersPromises.setTimeout,
  turn: timersPromises.setImmediate,
};
const realNow: () => number = performance.now.bind(performance);
const realHrtime: NodeJS.HRTime = process.hrtime;

export class World {
  readonly random: Random;
  nowMs = 0;
  /** How many events there were. */
  events = 0;
  #order = 0;
  /** A heap: the first is the next. */
  readonly #heap: Event[] = [];
  readonly #trace: ((line: string) => void) | undefined;

  constructor(seed: number, trace?: (line: string) => void) {
    this.random = new Random(seed);
    this.#trace = trace;
  }

  /** What happens, for who looks at one seed. */
  tell(line: () => string): void {
    this.#trace?.(`${this.nowMs.toFixed(1).padStart(9)} ms  ${line()}`);
  }

  /** Runs it so much later, in the context of who asks. Returns what takes it back. */
  later(ms: number, run: Run): Event {
    const context = new AsyncResource("later");
    return this.after(ms, () => context.runInAsyncScope(run), currentProcess());
  }

  /** Runs it so much later, in the context of that process alone. */
  after(ms: number, run: Run, process: Process | undefined): Event {
    const event: Event = {
      atMs: this.nowMs + Math.max(0, ms),
      order: this.#order++,
      run,
      process,
    };
    this.#push(event);
    return event;
  }

  /** Runs what is due until that moment, one after the other, or until there is nothing. */
  async runUntil(untilMs: number, isOver: () => boolean = () => false): Promise<void> {
    await settled();
    while (!isOver()) {
      const next = this.#heap[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#shift();
      const { run, process } = next;
      if (run === undefined || process?.isAlive === false) continue;
      if (process !== undefined && process.busyUntilMs > next.atMs) {
        next.atMs = process.busyUntilMs;
        this.#push(next);
        continue;
      }
      this.nowMs = Math.max(this.nowMs, next.atMs);
      this.events += 1;
      if (process === undefined) run();
      else inProcess(process, run);
      await settled();
    }
    if (!isOver()) this.nowMs = Math.max(this.nowMs, Math.min(untilMs, Number.MAX_SAFE_INTEGER));
  }

  /** Events of living processes that are still to come. */
  get pending(): number {
    return this.#heap.filter(({ run, process }) => run !== undefined && process?.isAlive !== false)
      .length;
  }

  install(): void {
    setWorld(this);
    Object.assign(globalThis, simulated);
    performance.now = () => this.nowMs;
    const hrtime = (): [number, number] => [
      Math.floor(this.nowMs / 1e3),
      Math.round((this.nowMs % 1e3) * 1e6),
    ];
    process.hrtime = Object.assign(hrtime, { bigint: () => realHrtime.bigint() });
    for (const one of copies) Object.assign(one, simulated, { hrtime });
    Math.random = () => this.random.next();
    timersPromises.setTimeout = pause as typeof timersPromises.setTimeout;
    timersPromises.setImmediate = nextTurn as typeof timersPromises.setImmediate;
    syncBuiltinESMExports();
  }

  uninstall(): void {
    setWorld(undefined);
    const { setTimeout, clearTimeout, setImmediate, clearImmediate } = real;
    Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate, clearImmediate });
    performance.now = realNow;
    process.hrtime = realHrtime;
    for (const one of copies) Object.assign(one, real.timers);
    Math.random = real.random;
    timersPromises.setTimeout = real.pause;
    timersPromises.setImmediate = real.turn;
    syncBuiltinESMExports();
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[at] = heap[parent] as Event;
      at = parent;
    }
    heap[at] = event;
  }

  #shift(): void {
    const heap = this.#heap;
    const last = heap.pop() as Event;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) {
        child += 1;
      }
      if (!isBefore(heap[child] as Event, last)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(left: Event, right: Event): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order);
}

/** How many turns are asked for at once: Node looks at its files once for all of them, which took a quarter of the time. */
const turnsAtOnce = 64;
let turnsAhead = 0;
let resolveTurn: Run | undefined;

/** Resolves when no promise has anything more to do: Node runs all of them before the next turn. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    resolveTurn = resolve;
    if (turnsAhead > 0) return;
    turnsAhead = turnsAtOnce;
    for (let turn = 0; turn < turnsAtOnce; turn++) real.setImmediate(onTurn);
  });
}

function onTurn(): void {
  turnsAhead -= 1;
  const resolve = resolveTurn;
  resolveTurn = undefined;
  resolve?.();
}

/** As those of Node, which code holds, unreferences and clears. */
class Timer {
  readonly #event: Event;

  constructor(event: Event) {
    this.#event = event;
  }

  clear(): void {
    this.#event.run = undefined;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return false;
  }
}

/** What a turn of an event loop takes. Who only waits awake (transport/spin-wait.ts) does it for so long, and a shorter turn gives it nothing to do but more of them. */
const turnMs = 0.05;

const simulated = {
  setTimeout: (run: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) =>
    new Timer(currentWorld().later(Math.max(1, ms), () => run(...args))),
  clearTimeout: (timer: unknown) => timer instanceof Timer && timer.clear(),
  setImmediate: (run: (...args: unknown[]) => void, ...args: unknown[]) =>
    new Timer(currentWorld().later(turnMs, () => run(...args))),
  clearImmediate: (timer: unknown) => timer instanceof Timer && timer.clear(),
};

function nextTurn<T>(value: T): Promise<T> {
  return new Promise((resolve) => simulated.setImmediate(() => resolve(value)));
}

function pause<T>(
  ms: number,
  value: T,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason as Error);
    const onAbort = (): void => {
      timer.clear();
      reject(signal?.reason as Error);
    };
    const timer = simulated.setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve(value);
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
