/**
 * The servers behind a router: selects one for the next request, and leaves failing ones out. Pure;
 * all times are arguments.
 *
 * The server with the fewest pending requests is next, as in verl's NaiveRouter: of several the
 * first, or for a deterministic run the one that the body's CRC-32 selects. A server that fails
 * several times in a row is left out until it answers its health check again; if all are left out,
 * all are tried.
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
  /** Requests that failed. */
  readonly failed: number;
}

interface Upstream {
  readonly url: string;
  inFlight: number;
  failuresInARow: number;
  isOut: boolean;
  served: number;
  failed: number;
}

export class Upstreams {
  readonly #all: readonly Upstream[];
  readonly #strategy: RouterStrategy;
  readonly #failures: number;
  #next = 0;

  constructor(urls: readonly string[], settings: UpstreamSettings = {}) {
    this.#all = urls.map((url) => ({
      url,
      inFlight: 0,
      failuresInARow: 0,
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

  succeeded(url: string): void {
    const upstream = this.#of(url);
    if (upstream === undefined) return;
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

  /** Records the result of a health check. */
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
    const tied = from.filter(({ inFlight }) => inFlight === least);
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
