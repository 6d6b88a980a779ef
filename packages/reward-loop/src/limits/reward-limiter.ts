/**
 * The limits of one endpoint as an actor: one for all workers of all reward loops, so that they
 * hold for all of them together.
 *
 * A user of the limiter is a holder (a reward loop worker). It takes leases under ids of its own,
 * so that it can report them to a restarted limiter, and they can be released when it dies. A lease
 * lasts as long as its holder lives: holders report every few seconds. After a restart the limiter
 * lets no call through before the holders had time to report their leases, and the pause that the
 * endpoint asked for: the endpoint still has those calls.
 */

import { isDeepStrictEqual } from "node:util";
import * as ray from "@rayling/core";
import { RewardLimiterConflictError } from "../errors.ts";
import { type Clock, realClock } from "../time/clock.ts";
import { limiterOptions, type LimiterTable } from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { SettingsOf } from "../options/table.ts";
import { LeaseHolder } from "./lease-holder.ts";
import type { GrantedCalls } from "./lease-holder.ts";
import { Limiter } from "./limiter.ts";
import { LimiterMetrics } from "./limiter-metrics.ts";
import type {
  EndpointWishes,
  LimiterSettings,
  LimiterState,
  LimitReport,
  LimitRequest,
  PastUse,
} from "./limiter.ts";

/** Limits of one endpoint. */
export type RewardLimiterSettings = LimiterSettings;
/** Loops that say the same in other words do not contradict each other. */
const whole = (settings: LimiterSettings): SettingsOf<LimiterTable> =>
  withDefaults(limiterOptions, settings);

/** The time that holders have to report their leases after a restart: each notices it at once. */
const GRACE_MS = 500;

/**
 * A holder's question is answered after so long, though nothing was granted. Below the time after
 * which the runtime calls an actor stuck.
 */
const ANSWER_MS = 5000;

/** The time after which a silent holder is dropped. */
const LOST_MS = 60_000;

/** A call that a holder wants to send, under a number of its own. */
export type AskedCall = readonly [id: number, request: LimitRequest];

/**
 * A call that is over, or not wanted any more; `goesOn`: it has its outcome, and keeps its lease
 * until its function has ended.
 */
export type CallReport = readonly [id: number, report: LimitReport, goesOn?: true];

/** All that a holder has under way. */
export interface HolderReport {
  /**
   * The number of this registration, which grows. Messages with another number, which were sent
   * before the last registration and arrive after it, are ignored. Default 0.
   */
  readonly epoch?: number;
  /** Leases, with their estimated tokens. */
  readonly held?: readonly (readonly [id: number, tokens: number])[];
  /** Calls that wait. */
  readonly asked?: readonly AskedCall[];
  /** Its use in the last minute, without those leases. */
  readonly used?: readonly PastUse[];
  /** The pause and the remainders that were announced to it, as far as they still hold. */
  readonly wishes?: EndpointWishes;
}

/** Limits of one endpoint, for all workers of all reward loops together. */
export class RewardLimiter {
  readonly #endpoint: string;
  #settings: SettingsOf<LimiterTable>;
  #limiter: Limiter;
  readonly #holders: Map<string, LeaseHolder> = new Map();
  readonly #clock: Clock;
  readonly #metrics: LimiterMetrics;
  #isSweeping = false;
  /**
   * The time of the restart, and the holders that have registered again; undefined if there was
   * none.
   */
  readonly #restart: { readonly atMs: number; readonly registered: Set<string> } | undefined;

  /** @param clock for tests: by which it is known who was not heard of for long */
  constructor(endpoint: string, settings: RewardLimiterSettings, clock: Clock = realClock) {
    this.#endpoint = endpoint;
    this.#settings = whole(settings);
    this.#clock = clock;
    this.#limiter = new Limiter(settings, clock);
    this.#metrics = new LimiterMetrics(endpoint, () => this.#limiter.state);
    if (!ray.getRuntimeContext().wasCurrentActorReconstructed()) return;
    this.#restart = { atMs: clock.now(), registered: new Set() };
    this.#limiter.pause(GRACE_MS);
  }

  /**
   * Registers a holder, or reports to a restarted limiter what it has and waits for: what it does
   * not name is over. Rejects with RewardLimiterConflictError if others use other settings.
   */
  async open(
    holder: string,
    settings: RewardLimiterSettings,
    { epoch = 0, held = [], asked = [], used = [], wishes = {} }: HolderReport = {},
  ): Promise<void> {
    const wanted = whole(settings);
    if (!isDeepStrictEqual(wanted, this.#settings)) {
      if (this.#holders.size > 0) throw new RewardLimiterConflictError(this.#endpoint);
      const before = this.#limiter;
      this.#settings = wanted;
      this.#limiter = new Limiter(settings, this.#clock);
      this.#limiter.takeOver(before);
    }
    const known = this.#holder(holder);
    if (epoch < known.epoch) return;
    known.epoch = epoch;
    known.reconcile(held, new Set(asked.map(([id]) => id)), this.#limiter);
    this.#remember(holder, used, wishes);
    this.#heard(known, asked, []);
  }

  /**
   * Calls that a holder wants to send, and calls that have their outcome, are over or not wanted
   * any more. Returns those of its calls that may be sent now. Undefined: it is not registered, or
   * not any more.
   *
   * @param epoch of the holder's last registration
   */
  update(
    holder: string,
    epoch: number,
    asked: readonly AskedCall[],
    over: readonly CallReport[] = [],
  ): GrantedCalls | undefined {
    const known = this.#holders.get(holder);
    if (known === undefined) return undefined;
    if (epoch !== known.epoch) return [];
    this.#heard(known, asked, over);
    return known.takeGrants();
  }

  /**
   * Resolves to the holder's calls that may be sent, when there are any, or after a while to none.
   * Keeps the holder registered; a failed call tells it that the limiter was restarted. Undefined:
   * it is not registered, or was silent for too long.
   */
  async nextGrants(holder: string, epoch: number): Promise<GrantedCalls | undefined> {
    const known = this.#holders.get(holder);
    if (known === undefined) return undefined;
    if (epoch !== known.epoch) return [];
    known.seenMs = this.#clock.now();
    const isHeard = await known.waitForGrants(ANSWER_MS);
    if (this.#holders.get(holder) !== known) return undefined;
    return isHeard ? known.takeGrants() : [];
  }

  /**
   * Resolves when a call that has a lease may send one more request: it counts as one of the
   * minute, and takes no place among calls at once. Rejects with the signal's reason.
   *
   * @param pauseMs the endpoint has refused it before, and wants no request for so long
   */
  further(signal?: AbortSignal, pauseMs = 0): Promise<void> {
    if (pauseMs > 0) this.#limiter.pause(pauseMs);
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = this.#limiter.askFurther(resolve);
    const abort = (): void => {
      giveUp();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    return promise.finally(() => {
      this.#metrics.changed();
      signal?.removeEventListener("abort", abort);
    });
  }

  /** Drops a holder, with all its leases. */
  leave(holder: string): void {
    this.#metrics.changed();
    this.#holders.get(holder)?.drop();
    this.#holders.delete(holder);
  }

  /** Drops the holders whose names have that prefix, with all their leases. */
  forget(prefix: string): void {
    for (const name of this.#holders.keys()) if (name.startsWith(prefix)) this.leave(name);
  }

  /** Returns how much of the limits is used, and by how many workers. */
  state(): LimiterState & { readonly holders: number } {
    return { ...this.#limiter.state, holders: this.#holders.size };
  }

  /** Once for each holder after a restart. */
  #remember(holder: string, used: readonly PastUse[], wishes: EndpointWishes): void {
    if (this.#restart === undefined || this.#restart.registered.has(holder)) return;
    this.#restart.registered.add(holder);
    // Later calls were let through by this limiter itself.
    const ageMs = this.#clock.now() - this.#restart.atMs;
    for (const one of used) if (one.agoMs >= ageMs) this.#limiter.remember(one);
    this.#limiter.heardBefore(wishes);
  }

  #heard(known: LeaseHolder, asked: readonly AskedCall[], over: readonly CallReport[]): void {
    this.#metrics.changed();
    known.seenMs = this.#clock.now();
    // Before leases are released, or one would go to a call that nobody wants.
    for (const [id] of over) known.leave(id);
    for (const [id, request] of asked) known.ask(id, request, this.#limiter);
    for (const [id, report, goesOn] of over) {
      if (goesOn === true) known.answered(id, report);
      else known.finish(id, report);
    }
  }

  #holder(name: string): LeaseHolder {
    let known = this.#holders.get(name);
    if (known === undefined) {
      known = new LeaseHolder(this.#clock.now());
      this.#holders.set(name, known);
      this.#sweep();
    }
    return known;
  }

  /** Drops holders that are not heard of, as long as there are any. */
  #sweep(): void {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    this.#clock.after(ANSWER_MS, () => {
      const nowMs = this.#clock.now();
      for (const [name, { seenMs }] of this.#holders) {
        if (nowMs - seenMs > LOST_MS) this.leave(name);
      }
      this.#isSweeping = false;
      if (this.#holders.size > 0) this.#sweep();
    });
  }
}

/** `RewardLimiter` as an actor. */
export const RewardLimiterActor: ray.ActorClass<typeof RewardLimiter> = ray.remote(RewardLimiter, {
  isolation: "shared",
});

/**
 * Returns the limiter of that endpoint, and makes it if there is none. It lives as long as the
 * runtime, so that the use of the last minute counts for later loops, too.
 */
export function rewardLimiterOf(
  endpoint: string,
  settings: RewardLimiterSettings,
): ray.ActorHandle<RewardLimiter> {
  return RewardLimiterActor.options({
    name: `reward_limiter:${endpoint}`,
    getIfExists: true,
    lifetime: "session",
    maxRestarts: -1,
    maxConcurrency: 10_000_000,
    numCpus: 0,
  }).remote(endpoint, settings);
}
