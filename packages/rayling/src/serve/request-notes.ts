/**
 * Notes each request that asks for scores, in one line of the log, and counts requests and samples
 * in Prometheus metrics beside the session's own.
 */

import { metrics } from "@rayling/core";

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

export class RequestNotes {
  readonly #say: (line: string) => void;
  readonly #requests = new metrics.Counter("reward_requests", {
    description: "Requests for scores, by path and status",
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
}
