/**
 * The limits of one endpoint as an actor: one for all workers of all reward loops, so that they hold for all of them together.
 *
 * Who uses it is a holder (a reward loop worker), and takes leases under ids of its own, so that what it holds can be said again to a limiter that was restarted, and taken
 * from it when it died. A lease that nobody gives back runs out. After a restart nobody is let through before the holders had time to say what they hold: the endpoint
 * still has those calls.
 */

import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import * as ray from "@rayling/core";
import { RewardLimiterConflictError } from "../errors.ts";
import { Limiter } from "./limiter.ts";
import type { Lease, LimiterSettings, LimiterState, LimitReport, LimitRequest } from "./limiter.ts";

export interface RewardLimiterSettings extends LimiterSettings {
  /** How long a call may be under way before its lease runs out. Default 600,000. */
  readonly leaseMs?: number;
}

/** How long holders have to say what they hold, after a restart: each hears of it at once. */
const GRACE_MS = 500;

/** How long a call that was cut off still counts: its endpoint hears of it later than we do. */
const LINGER_MS = 100;

/** After so long, whoever waits here is told that it waits on. Below what the runtime takes for stuck. */
const ANSWER_MS = 5000;

/** Of a holder that is not heard of any more. */
const LOST_MS = 60_000;

interface Held {
  readonly lease: Lease;
  readonly untilMs: number;
}

interface Waiting {
  readonly abort: AbortController;
  /** With how long it was waited for. */
  readonly granted: Promise<number>;
}

interface Holder {
  readonly held: Map<number, Held>;
  readonly waiting: Map<number, Waiting>;
  seenMs: number;
}

export class RewardLimiter {
  readonly #endpoint: string;
  #settings: RewardLimiterSettings;
  #limiter: Limiter;
  readonly #holders: Map<string, Holder> = new Map();
  #sweep: NodeJS.Timeout | undefined;

  constructor(endpoint: string, settings: RewardLimiterSettings) {
    this.#endpoint = endpoint;
    this.#settings = settings;
    this.#limiter = new Limiter(settings);
    if (ray.getRuntimeContext().wasCurrentActorReconstructed()) this.#limiter.pause(GRACE_MS);
  }

  /**
   * A holder begins, or says again to a restarted limiter which calls it has under way. Rejects with RewardLimiterConflictError if others hold to other settings.
   *
   * @param held ids of leases, with the tokens that were estimated for them
   */
  async open(
    holder: string,
    settings: RewardLimiterSettings,
    held: readonly (readonly [id: number, tokens: number])[] = [],
  ): Promise<void> {
    if (!isDeepStrictEqual(settings, this.#settings)) {
      if (this.#holders.size > 0) throw new RewardLimiterConflictError(this.#endpoint);
      this.#settings = settings;
      this.#limiter = new Limiter(settings);
    }
    const known = this.#holder(holder);
    for (const [id, tokens] of held) {
      if (!known.held.has(id)) this.#hold(known, id, this.#limiter.adopt(tokens));
    }
  }

  /**
   * How long it was waited for, when the call may go out. Undefined: not yet, ask again with the same id; it keeps its place.
   */
  async acquire(holder: string, id: number, request: LimitRequest): Promise<number | undefined> {
    const known = this.#holder(holder);
    // It may have come between two questions.
    const held = known.held.get(id);
    if (held !== undefined) return held.lease.waitedMs;
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
    const known = this.#holders.get(holder);
    const held = known?.held.get(id);
    known?.held.delete(id);
    if (report.isCut === true) setTimeout(() => held?.lease.release(report), LINGER_MS);
    else held?.lease.release(report);
  }

  /** It does not want that lease any more, whether it has it or not. */
  leave(holder: string, id: number): void {
    this.#holders.get(holder)?.waiting.get(id)?.abort.abort(new Error("given up"));
    this.release(holder, id, { outcome: "unknown", tokens: 0 });
  }

  /** Holders whose names begin so are gone, with all they had under way. */
  forget(prefix: string): void {
    for (const name of this.#holders.keys()) if (name.startsWith(prefix)) this.#drop(name);
  }

  /** The holder is there. Answers after a while: a call of it that fails tells the holder that the limiter was restarted. */
  async watch(holder: string): Promise<void> {
    const known = this.#holders.get(holder);
    if (known !== undefined) known.seenMs = performance.now();
    await delay(ANSWER_MS, undefined, { ref: false });
  }

  state(): LimiterState & { readonly holders: number } {
    return { ...this.#limiter.state, holders: this.#holders.size };
  }

  #holder(name: string): Holder {
    let known = this.#holders.get(name);
    if (known === undefined) {
      known = { held: new Map(), waiting: new Map(), seenMs: performance.now() };
      this.#holders.set(name, known);
    }
    return known;
  }

  #wait(known: Holder, id: number, request: LimitRequest): Waiting {
    const abort = new AbortController();
    const grant = async (): Promise<number> => {
      const lease = await this.#limiter.acquire(request, abort.signal);
      this.#hold(known, id, lease);
      return lease.waitedMs;
    };
    const granted = grant().finally(() => known.waiting.delete(id));
    // Whoever asks hears of it.
    granted.catch(() => undefined);
    const waiting = { abort, granted };
    known.waiting.set(id, waiting);
    return waiting;
  }

  #drop(name: string): void {
    const { held = new Map<number, Held>(), waiting = new Map<number, Waiting>() } =
      this.#holders.get(name) ?? {};
    this.#holders.delete(name);
    for (const { abort } of waiting.values()) abort.abort(new Error("its holder is gone"));
    const leases = [...held.values()];
    // Nothing is known of how they went, nor of what they used.
    setTimeout(() => {
      for (const { lease } of leases) lease.release({ outcome: "unknown" });
    }, LINGER_MS);
  }

  #hold({ held }: Holder, id: number, lease: Lease): void {
    const { leaseMs = 600_000 } = this.#settings;
    held.set(id, { lease, untilMs: performance.now() + leaseMs });
    if (this.#sweep === undefined) {
      this.#sweep = setInterval(() => this.#sweepOut(), ANSWER_MS).unref();
    }
  }

  /** Leases that have run out, and holders that are not heard of. */
  #sweepOut(): void {
    const nowMs = performance.now();
    for (const [name, { held, seenMs }] of this.#holders) {
      if (nowMs - seenMs > LOST_MS) this.#drop(name);
      for (const [id, { lease, untilMs }] of held) {
        // In the order of their beginning: the rest is younger.
        if (untilMs > nowMs) break;
        held.delete(id);
        lease.release({ outcome: "unknown" });
      }
    }
  }
}

export const RewardLimiterActor: ray.ActorClass<typeof RewardLimiter> = ray.remote(RewardLimiter, {
  isolation: "shared",
});

/** The limiter of that endpoint, which is made if there is none. It lives as long as somebody has a handle. */
export function rewardLimiterOf(
  endpoint: string,
  settings: RewardLimiterSettings,
): ray.ActorHandle<RewardLimiter> {
  return RewardLimiterActor.options({
    name: `reward_limiter:${endpoint}`,
    getIfExists: true,
    maxRestarts: -1,
    maxConcurrency: 10_000_000,
    numCpus: 0,
  }).remote(endpoint, settings);
}
