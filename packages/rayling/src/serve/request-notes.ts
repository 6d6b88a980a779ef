/**
 * Notes each request that asks for scores, in one line of the log, and counts requests and samples
 * in Prometheus metrics beside the session's own. Requests that are refused before they are read
 * as such are noted, too; a flood of them is counted whole, and logged in part.
 */

import { metrics } from "@rayling/core";
import type { RefusedRequest } from "@rayling/core/http";
import { scoringPath } from "./routes.ts";

export interface RequestNote {
  readonly path: string;
  readonly status: number;
  readonly samples: number;
  readonly valid: number;
  readonly invalid: number;
  /** Answered by what was known of their keys. */
  readonly replayed: number;
  /** Code of the first failure, of a sample or of the request. */
  readonly error: string | undefined;
  readonly ms: number;
}

/** Replayed: answered by what was known of its key. */
export type SampleOutcome = "valid" | "invalid" | "replayed";

/** A score takes from microseconds, by a rule, to minutes, by a judge. */
const boundaries: readonly number[] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300];

/** Lines about refused requests in one window. */
const mostRefusedLines = 20;
const windowMs = 1000;

export class RequestNotes {
  readonly #say: (line: string) => void;
  /** Refused requests in this window, which begins with the first of them. */
  #refused = 0;
  readonly #requests = new metrics.Counter("reward_requests", {
    description: "Requests for scores, by path and status; path other: refused for any other path",
    tagKeys: ["path", "status"],
  });
  readonly #samples = new metrics.Counter("served_samples", {
    description: "Samples that were answered: valid, invalid, or replayed by their key",
    tagKeys: ["outcome"],
  });
  readonly #seconds = new metrics.Histogram("reward_request_seconds", {
    description: "How long requests for scores took",
    tagKeys: ["path"],
    boundaries,
  });

  /** Call it in a session. @param say takes a line of the log */
  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  addSample(outcome: SampleOutcome): void {
    this.#samples.inc(1, { outcome });
  }

  addRequest({ path, status, samples, valid, invalid, replayed, error, ms }: RequestNote): void {
    this.#requests.inc(1, { path, status: String(status) });
    this.#seconds.observe(ms / 1000, { path });
    const known = replayed === 0 ? "" : ` replayed=${replayed}`;
    const why = error === undefined ? "" : ` error=${error}`;
    this.#say(
      `POST ${path} ${status} samples=${samples} valid=${valid} invalid=${invalid}${known}${why} ms=${ms.toFixed(1)}`,
    );
  }

  /** Counts a path that does not ask for scores as "other": clients may send any number of them. */
  addRefused({ method = "-", path = "", status, code }: RefusedRequest): void {
    const known = scoringPath(path) ?? "other";
    this.#requests.inc(1, { path: known, status: String(status) });
    if (this.#refused === 0) setTimeout(() => this.#endWindow(), windowMs).unref();
    this.#refused += 1;
    if (this.#refused > mostRefusedLines) return;
    this.#say(`${method} ${known} ${status} refused error=${code}`);
  }

  #endWindow(): void {
    const unsaid = this.#refused - mostRefusedLines;
    if (unsaid > 0) this.#say(`refused ${unsaid} more requests in ${windowMs / 1000} s`);
    this.#refused = 0;
  }
}
