/**
 * The limits of one endpoint as an actor: one for all workers of all reward loops, so that they
 * hold for all of them together.
 *
 * A user of the limiter is a holder (a reward loop worker). It takes leases under ids of its own,
 * so that it can report them to a restarted limiter, and they can be released when it dies. A lease
 * lasts as long as its holder lives: holders report every few seconds. After a restart the limiter
 * lets no call through before the holders had time to report their leases: the endpoint still has
 * those calls.
 */

import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import * as ray from "@rayling/core";
import { RewardLimiterConflictError } from "../errors.ts";
import { type Clock, realClock } from "../time/clock.ts";
import { limiterOptions, type LimiterTable } from "../options/defaults/policies.ts";
import { withDefaults } from "../options/read.ts";
import type { SettingsOf } from "../options/table.ts";
import { Limiter } from "./limiter.ts";
import { LimiterMetrics } from "./limiter-metrics.ts";
import type {
  Lease,
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

/** How long a call that was cut off still counts: its endpoint notices later. */
const LINGER_MS = 100;

/**
 * A waiting request is answered after so long that it waits on. Below the time after which the
 * runtime calls an actor stuck.
 */
const ANSWER_MS = 5000;

/** The time after which a silent holder is dropped. */
const LOST_MS = 60_000;

interface Waiting {
  readonly abort: AbortController;
  /** Resolves to the time that the request waited. */
  readonly granted: Promise<number>;
}

interface Holder {
  readonly held: Map<number, Lease>;
  readonly waiting: Map<number, Waiting>;
  seenMs: number;
}

/** Limits of one endpoint, for all workers of all reward loops together. */
export class RewardLimiter {
  readonly #endpoint: string;
  #settings: SettingsOf<LimiterTable>;
  #limiter: Limiter;
  readonly #holders: Map<string, Holder> = new Map();
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
   * Registers a holder, or reports its pending calls to a restarted limiter. Rejects with
   * RewardLimiterConflictError if others use other settings.
   *
   * @param held ids of leases, with their estimated tokens
   * @param used its use in the last minute, without those leases
   */
  async open(
    holder: string,
    settings: RewardLimiterSettings,
    held: readonly (readonly [id: number, tokens: number])[] = [],
    used: readonly PastUse[] = [],
  ): Promise<void> {
    const asked = whole(settings);
    if (!isDeepStrictEqual(asked, this.#settings)) {
      if (this.#holders.size > 0) throw new RewardLimiterConflictError(this.#endpoint);
      const before = this.#limiter;
      this.#settings = asked;
      this.#limiter = new Limiter(settings, this.#clock);
      this.#limiter.takeOver(before);
    }
    const known = this.#holder(holder);
    for (const [id, tokens] of held) {
      if (!known.held.has(id)) known.held.set(id, this.#limiter.adopt(tokens));
    }
    if (this.#restart === undefined || this.#restart.registered.has(holder)) return;
    this.#restart.registered.add(holder);
    // Later calls were let through by this limiter itself.
    const ageMs = this.#clock.now() - this.#restart.atMs;
    for (const one of used) if (one.agoMs >= ageMs) this.#limiter.remember(one);
  }

  /**
   * Resolves to the time that the request waited, when the call may be sent. Undefined: not yet,
   * ask again with the same id; it keeps its place.
   */
  async acquire(holder: string, id: number, request: LimitRequest): Promise<number | undefined> {
    const known = this.#holder(holder);
    // It may have been granted between two requests.
    const held = known.held.get(id);
    if (held !== undefined) return held.waitedMs;
    const { granted } = known.waiting.get(id) ?? this.#wait(known, id, request);
    const later = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => later.resolve(undefined), ANSWER_MS);
    try {
      return await Promise.race([granted, later.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The call is over; an id that is not held is passed over. */
  release(holder: string, id: number, report: LimitReport): void {
    this.#metrics.changed();
    const known = this.#holders.get(holder);
    const held = known?.held.get(id);
    known?.held.delete(id);
    if (report.isCut === true) setTimeout(() => held?.release(report), LINGER_MS);
    else held?.release(report);
  }

  /** Drops a request or releases its lease. */
  leave(holder: string, id: number): void {
    this.#holders.get(holder)?.waiting.get(id)?.abort.abort(new Error("given up"));
    this.release(holder, id, { outcome: "unknown", tokens: 0 });
  }

  /** Drops the holders whose names have that prefix, with all their leases. */
  forget(prefix: string): void {
    for (const name of this.#holders.keys()) if (name.startsWith(prefix)) this.#drop(name);
  }

  /**
   * Keeps the holder registered. Answers after a while: a failed call tells the holder that the
   * limiter was restarted.
   *
   * @returns false, at once, for a holder that was silent for too long and has to register again
   */
  async watch(holder: string): Promise<boolean> {
    const known = this.#holders.get(holder);
    if (known === undefined) return false;
    known.seenMs = this.#clock.now();
    await delay(ANSWER_MS, undefined, { ref: false });
    return true;
  }

  /** Returns how much of the limits is used, and by how many workers. */
  state(): LimiterState & { readonly holders: number } {
    return { ...this.#limiter.state, holders: this.#holders.size };
  }

  #holder(name: string): Holder {
    let known = this.#holders.get(name);
    if (known === undefined) {
      known = { held: new Map(), waiting: new Map(), seenMs: this.#clock.now() };
      this.#holders.set(name, known);
      this.#sweep();
    }
    return known;
  }

  #wait(known: Holder, id: number, request: LimitRequest): Waiting {
    this.#metrics.changed();
    const abort = new AbortController();
    const grant = async (): Promise<number> => {
      const lease = await this.#limiter.acquire(request, abort.signal);
      known.held.set(id, lease);
      return lease.waitedMs;
    };
    const granted = grant().finally(() => known.waiting.delete(id));
    // Callers of acquire get the rejection.
    granted.catch(() => undefined);
    const waiting = { abort, granted };
    known.waiting.set(id, waiting);
    return waiting;
  }

  #drop(name: string): void {
    const { held = new Map<number, Lease>(), waiting = new Map<number, Waiting>() } =
      this.#holders.get(name) ?? {};
    this.#holders.delete(name);
    for (const { abort } of waiting.values()) abort.abort(new Error("its holder is gone"));
    const leases = [...held.values()];
    // The results and the usage of these calls are unknown.
    setTimeout(() => {
      for (const lease of leases) lease.release({ outcome: "unknown" });
    }, LINGER_MS);
  }

  /** Drops holders that are not heard of, as long as there are any. */
  #sweep(): void {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    this.#clock.after(ANSWER_MS, () => {
      const nowMs = this.#clock.now();
      for (const [name, { seenMs }] of this.#holders) {
        if (nowMs - seenMs > LOST_MS) this.#drop(name);
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
