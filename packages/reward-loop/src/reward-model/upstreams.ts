/**
 * The servers behind a router: selects one for the next request, and leaves failing ones out. Pure;
 * all times are arguments.
 *
 * The server with the fewest pending requests is next, as in verl's NaiveRouter: of several the
 * first with the fewest marks, or for a deterministic run the one that the body's CRC-32 selects. A
 * server that fails several times in a row is left out until it answers its health check again; if
 * all are left out, all are tried.
 *
 * A server that is well and answers nothing has marks: one for each request that its client gave
 * up, with no success in between. Clients also give up for other reasons (a hedge that was quicker,
 * a loop that ends), so a mark needs a request that waited longer than answers take, and was sent
 * after the last mark: all that a client gives up at once is one mark.
 */

import zlib from "node:zlib";
import { itemAt } from "@rayling/reward-manager-registry/values";
import { withDefaults } from "../options/read.ts";
import { routerOptions } from "../options/defaults/reward-model.ts";
import type { RouterStrategy } from "../options/defaults/reward-model.ts";

export interface UpstreamSettings {
  readonly strategy?: RouterStrategy;
  /** Failures in a row after which a server is left out. */
  readonly failures?: number;
}

/** The state of one server behind a router. */
export interface UpstreamState {
  /** The URL of the server. */
  readonly url: string;
  /** Pending requests. */
  readonly inFlight: number;
  /** Whether it is left out, until it answers its health check again. */
  readonly isOut: boolean;
  /** Requests that succeeded. */
  readonly served: number;
  /** Requests that failed: no answer, half of one, or a 5xx. */
  readonly failed: number;
}

interface Upstream {
  readonly url: string;
  inFlight: number;
  failuresInARow: number;
  /** Requests given up without an answer since the last success: one for those of a time. */
  marks: number;
  markedMs: number;
  isOut: boolean;
  served: number;
  failed: number;
}

export class Upstreams {
  readonly #all: readonly Upstream[];
  readonly #strategy: RouterStrategy;
  readonly #failures: number;
  #next = 0;
  /** How long an answer takes: a mean of the last ones of all servers. */
  #tookMs = 0;

  constructor(urls: readonly string[], settings: UpstreamSettings = {}) {
    this.#all = urls.map((url) => ({
      url,
      inFlight: 0,
      failuresInARow: 0,
      marks: 0,
      markedMs: -Infinity,
      isOut: false,
      served: 0,
      failed: 0,
    }));
    const { strategy, failures } = withDefaults(routerOptions, settings);
    this.#strategy = strategy;
    this.#failures = failures;
  }

  /**
   * Returns the server for the next request, which counts as pending there until it is released.
   * Undefined: there is no server, or each was tried.
   *
   * @param tried servers that had it already
   * @param tieBreaker the request's body, where it selects between equal servers
   */
  select(
    tried: ReadonlySet<string> = new Set(),
    tieBreaker?: string | Uint8Array,
  ): string | undefined {
    const left = this.#all.filter(({ url }) => !tried.has(url));
    const healthy = left.filter(({ isOut }) => !isOut);
    const chosen = this.#choose(healthy.length > 0 ? healthy : left, tieBreaker);
    if (chosen === undefined) return undefined;
    chosen.inFlight += 1;
    return chosen.url;
  }

  /** Ends a pending request of that server. */
  release(url: string): void {
    const upstream = this.#of(url);
    if (upstream !== undefined) upstream.inFlight = Math.max(0, upstream.inFlight - 1);
  }

  /** @param tookMs from its request to the end of its answer */
  succeeded(url: string, tookMs: number = this.#tookMs): void {
    const upstream = this.#of(url);
    if (upstream === undefined) return;
    this.#tookMs += (tookMs - this.#tookMs) / 8;
    upstream.marks = 0;
    upstream.served += 1;
    upstream.failuresInARow = 0;
    upstream.isOut = false;
  }

  failed(url: string): void {
    const upstream = this.#of(url);
    if (upstream === undefined) return;
    upstream.failed += 1;
    upstream.failuresInARow += 1;
    if (upstream.failuresInARow >= this.#failures) upstream.isOut = true;
  }

  /** Its client gave up a request before the whole answer was there. */
  givenUp(url: string, sentMs: number, nowMs: number): void {
    const upstream = this.#of(url);
    if (upstream === undefined || sentMs < upstream.markedMs) return;
    if (nowMs - sentMs < this.#tookMs) return;
    upstream.marks += 1;
    upstream.markedMs = nowMs;
    if (upstream.marks >= this.#failures) upstream.isOut = true;
  }

  /**
   * Records the result of a health check. A server with marks that is back keeps them until it
   * answers: the next mark leaves it out again.
   */
  checked(url: string, isHealthy: boolean): void {
    const upstream = this.#of(url);
    if (upstream === undefined) return;
    upstream.isOut = !isHealthy;
    if (isHealthy) upstream.failuresInARow = 0;
  }

  get states(): UpstreamState[] {
    return this.#all.map(({ url, inFlight, isOut, served, failed }) => ({
      url,
      inFlight,
      isOut,
      served,
      failed,
    }));
  }

  #choose(from: readonly Upstream[], tieBreaker?: string | Uint8Array): Upstream | undefined {
    if (this.#strategy === "round-robin") return this.#inTurn(from);
    const least = Math.min(...from.map(({ inFlight }) => inFlight));
    const equal = from.filter(({ inFlight }) => inFlight === least);
    const fewest = Math.min(...equal.map(({ marks }) => marks));
    const tied = equal.filter(({ marks }) => marks === fewest);
    return tied[tieBreaker === undefined ? 0 : zlib.crc32(tieBreaker) % tied.length];
  }

  #inTurn(from: readonly Upstream[]): Upstream | undefined {
    for (let step = 0; step < this.#all.length; step++) {
      const one = itemAt(this.#all, this.#next % this.#all.length);
      this.#next += 1;
      if (from.includes(one)) return one;
    }
    return undefined;
  }

  #of(url: string): Upstream | undefined {
    return this.#all.find((one) => one.url === url);
  }
}
