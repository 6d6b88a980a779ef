/**
 * Paces the requests that a call of a function sends by the client of this package, where its
 * endpoint has limits. The call's lease counts its first request to a server; each further one
 * waits until the limits of the minute have room, and counts there. A pause that the endpoint has
 * asked a client for holds at once for all calls.
 *
 * Invariant: it waits for no place among calls at once. Its call has one, and other calls that have
 * one might wait alike.
 */

import * as ray from "@rayling/core";
import type { ActorHandle } from "@rayling/core";
import { isRecord } from "@rayling/reward-manager-registry/values";
import type { AnnouncedRequest } from "@rayling/reward-manager-registry/values";
import { rewardLimiterOf } from "../limits/reward-limiter.ts";
import type { RewardLimiter } from "../limits/reward-limiter.ts";
import type { PolicySettings } from "../settings/policy-settings.ts";
import { PATIENT } from "../time/stuck-warning.ts";
import type { RunTracker } from "./run-tracker.ts";
import type { Run } from "./run.ts";

type Limits = NonNullable<PolicySettings["limits"]>;

export class RequestGate {
  readonly #limits: Limits;
  readonly #tracker: Pick<RunTracker, "current" | "outside">;
  /** The servers that a run has asked. */
  readonly #asked: WeakMap<Run, Set<string>> = new WeakMap();
  /** Found at the first further request. */
  #limiter: ActorHandle<RewardLimiter> | undefined;

  constructor(limits: Limits, tracker: Pick<RunTracker, "current" | "outside">) {
    this.#limits = limits;
    this.#tracker = tracker;
  }

  /** Sets the turn of a further request that a run of this executor sends. */
  announced(request: unknown): void {
    const run = this.#tracker.current;
    if (run === undefined || !isRequest(request)) return;
    const asked = this.#asked.get(run) ?? new Set();
    this.#asked.set(run, asked);
    const server = URL.canParse(request.url) ? new URL(request.url).origin : request.url;
    if (asked.has(server)) {
      // Calls of the limiter are on no sample's account.
      request.turn = this.#tracker
        .outside(() => this.#further(request))
        .then(() => {
          run.saw({ further: (run.seen.further ?? 0) + 1 });
        });
    }
    asked.add(server);
  }

  /** Rejects with the signal's reason, or with why the limiter is gone. */
  async #further({ signal, pauseMs }: AnnouncedRequest): Promise<void> {
    const { endpoint, settings } = this.#limits;
    const pausedUntilMs = performance.now() + pauseMs;
    this.#limiter ??= rewardLimiterOf(endpoint, settings);
    for (;;) {
      signal?.throwIfAborted();
      try {
        const leftMs = Math.max(0, pausedUntilMs - performance.now());
        return await ray.get(this.#limiter.further.remote(signal, leftMs), PATIENT);
      } catch (error) {
        signal?.throwIfAborted();
        // It is being restarted.
        if (!(error instanceof ray.ActorUnavailableError)) throw error;
      }
    }
  }
}

function isRequest(message: unknown): message is AnnouncedRequest {
  return isRecord(message) && typeof message["url"] === "string";
}
