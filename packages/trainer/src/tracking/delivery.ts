/**
 * Sends the reports of a logger to a server in the background: in order, but for those that fail.
 *
 * A server that does not answer holds nobody up: reports are kept, up to a limit, and sent again
 * after pauses that grow. A report that fails goes behind all others, which it does not hold back:
 * it may be the only one that the server fails on. Reports that wait are sent together where one
 * request may carry them, so that an hour of them takes few; where such a request fails, fewer go
 * together. A report that the server refuses, or that finds no place, is lost; lost values are
 * counted.
 */

import { present } from "@rayling/reward-manager-registry/values";

/** One request. */
export interface Report {
  /** Number of values in it, for the count of lost ones. */
  readonly values: number;
  /** Words for what it carries, for a warning where it is refused: `the metric "x"`. */
  readonly what?: string | undefined;
  /** Rejects with RefusedReport where another attempt would fail too. */
  send(signal: AbortSignal): Promise<void>;
  /** Parts to send in its place where it is refused for one of its values; none: it has one. */
  parts?(): readonly Report[];
  /** Returns one report for both, in this order; undefined: each needs a request of its own. */
  joined?(next: Report): Report | undefined;
}

/** The server refused a report: another attempt would fail too. */
export class RefusedReport extends Error {
  override readonly name = "RefusedReport";

  /** Whether some of its values may be taken without the others. */
  get isForValue(): boolean {
    return false;
  }
}

/** The server answered that it failed: another attempt may go well. */
export class FailedReport extends Error {
  override readonly name = "FailedReport";
}

export interface DeliverySettings {
  /** Called when sending fails after it went well, and when values are lost. */
  readonly warn: (problem: string, cause?: unknown) => void;
  /** First pause after a failure; each further one is twice as long, up to 30 seconds. */
  readonly pauseMs: number;
  /** Values that are kept while the server does not answer. */
  readonly maxKept: number;
}

/** Attempts for each report after the end of a run. */
const lastAttempts = 2;
const longestPauseMs = 30_000;
const requestTimeoutMs = 10_000;
/**
 * A `Tracking` that closes waits for 30 seconds: for a request on its way, for what is left, and
 * for the report of the end, which has a time of its own.
 */
const last = { timeoutMs: 5000, spanMs: 10_000, endSpanMs: 5000 } as const;
/** Refused reports that are named; further ones are only counted. */
const mostNamed = 10;

export class Delivery {
  readonly #settings: DeliverySettings;
  /** Reports that were not sent yet. */
  #fresh: Report[] = [];
  /** Reports whose last attempt failed. */
  #failed: Report[] = [];
  /** Before the next attempt of a fresh report. */
  readonly #pause: GrowingPause;
  /** Before the next attempt of a failed one. */
  readonly #longerPause: GrowingPause;
  /** Kept reports with a failed attempt. A warning names the first one. */
  readonly #failing = new Set<Report>();
  readonly #named = new Set<string>();
  /** Reports that may go together: half as many after a failure, twice as many after none. */
  #mostTogether = Infinity;
  #keptValues = 0;
  #lost = 0;
  #hasWarnedOfLoss = false;
  #isEnding = false;
  #sending: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  constructor(settings: DeliverySettings) {
    this.#settings = settings;
    this.#pause = new GrowingPause(settings.pauseMs);
    this.#longerPause = new GrowingPause(settings.pauseMs);
  }

  /** Number of values that were not delivered and will not be. */
  get lost(): number {
    return this.#lost;
  }

  add(report: Report): void {
    const { maxKept } = this.#settings;
    if (this.#isEnding) return this.#lose(report, "the run has ended");
    if (this.#keptValues + report.values > maxKept) {
      return this.#lose(report, `more than ${maxKept} values wait to be sent`);
    }
    this.#fresh.push(report);
    this.#keptValues += report.values;
    this.#sending ??= this.#sendAll();
    this.#wake?.();
  }

  /**
   * Sends what is left, in a few attempts; resolves within 25 seconds, when all of it is delivered
   * or lost. Nothing is sent after that.
   *
   * @param end the report of how the run ended, which is sent even if others find no time
   */
  async close(end?: Report): Promise<void> {
    this.#isEnding = true;
    this.#wake?.();
    await this.#sending;
    await this.#sendLast(last.spanMs);
    if (end !== undefined) {
      this.#fresh.push(end);
      await this.#sendLast(last.endSpanMs);
    }
    if (this.#lost > 0) this.#settings.warn(`${this.#lost} values were not delivered`);
  }

  async #sendAll(): Promise<void> {
    while (!this.#isEnding) {
      const isFresh = this.#fresh.length > 0;
      const pause = isFresh ? this.#pause : this.#longerPause;
      const queue = isFresh ? this.#fresh : this.#failed;
      if (queue.length === 0) break;
      if (pause.leftMs > 0) {
        await this.#wait(pause.leftMs);
        continue;
      }
      const together = takeTogether(queue, this.#mostTogether);
      const failure = await this.#attempt(together, requestTimeoutMs);
      if (failure === undefined) pause.reset();
      else {
        this.#failed.push(...together.reports);
        pause.begin();
        // It is not sent again at once where no fresh ones are left.
        if (isFresh && this.#longerPause.leftMs <= 0) this.#longerPause.begin();
      }
    }
    // In this turn: a report that is added in the next one has to be sent, too.
    this.#sending = undefined;
  }

  /**
   * Attempts all that are left, those that never failed first, until the server is silent or the
   * time is over; then what is left is lost.
   */
  async #sendLast(spanMs: number): Promise<void> {
    const endMs = performance.now() + spanMs;
    let cause: unknown = "the run has ended, and the server takes them too slowly";
    for (let attempt = 1; attempt <= lastAttempts; attempt += 1) {
      if (attempt > 1 && this.#failed.length > 0) {
        await this.#wait(Math.max(0, Math.min(this.#settings.pauseMs, endMs - performance.now())));
      }
      this.#fresh = [...this.#fresh, ...this.#failed];
      this.#failed = [];
      while (this.#fresh.length > 0 && performance.now() < endMs) {
        const together = takeTogether(this.#fresh, this.#mostTogether);
        const leftMs = Math.ceil(endMs - performance.now());
        const failure = await this.#attempt(together, Math.min(last.timeoutMs, leftMs));
        if (failure === undefined) continue;
        cause = failure.cause;
        const { reports } = together;
        // Fewer of them at once: the server may fail on one alone.
        if (cause instanceof FailedReport && reports.length > 1) this.#fresh.unshift(...reports);
        else this.#failed.push(...reports);
        if (!(cause instanceof FailedReport)) break;
      }
    }
    for (const report of [...this.#fresh, ...this.#failed]) this.#lose(report, cause);
    [this.#fresh, this.#failed, this.#keptValues] = [[], [], 0];
  }

  /** Returns why reports are to be sent again; undefined: they are delivered or refused. */
  async #attempt({ reports, request }: Together, timeoutMs: number): Promise<Failure | undefined> {
    const failure = await failureOf(request, timeoutMs);
    if (failure !== undefined && !(failure.cause instanceof RefusedReport)) {
      if (this.#failing.size === 0) this.#warnOfFailure(failure.cause);
      for (const report of reports) this.#failing.add(report);
      this.#mostTogether = Math.max(1, Math.floor(reports.length / 2));
      return failure;
    }
    this.#mostTogether *= 2;
    for (const report of reports) this.#failing.delete(report);
    const parts =
      failure?.cause instanceof RefusedReport && failure.cause.isForValue
        ? (request.parts?.() ?? [])
        : [];
    if (parts.length > 0) {
      this.#fresh.unshift(...parts);
      return undefined;
    }
    this.#keptValues -= request.values;
    if (failure !== undefined) this.#refuse(request, failure.cause);
    return undefined;
  }

  #refuse(report: Report, why: unknown): void {
    const { what } = report;
    if (what === undefined) return this.#lose(report, why);
    this.#lost += report.values;
    if (this.#named.has(what) || this.#named.size >= mostNamed) return;
    this.#named.add(what);
    this.#settings.warn(`${what} is refused`, why);
  }

  /** Warns of the first loss; the others are in the count at the end. */
  #lose({ values }: Report, why: unknown): void {
    this.#lost += values;
    if (this.#hasWarnedOfLoss) return;
    this.#hasWarnedOfLoss = true;
    if (typeof why === "string") this.#settings.warn(`values are lost: ${why}`);
    else this.#settings.warn("values are lost", why);
  }

  #warnOfFailure(cause: unknown): void {
    const what = cause instanceof FailedReport ? "it answers with a failure" : "it does not answer";
    this.#settings.warn(`${what}; reports are kept and sent again`, cause);
  }

  /** Ends early where a report is added, and where the run ends. */
  async #wait(ms: number): Promise<void> {
    const pause = Promise.withResolvers<void>();
    const timer = setTimeout(pause.resolve, ms);
    // A program that ends without closing its loggers does not wait for them.
    timer.unref();
    this.#wake = pause.resolve;
    await pause.promise;
    clearTimeout(timer);
    this.#wake = undefined;
  }
}

/** Reports that one request carries. */
interface Together {
  readonly reports: readonly Report[];
  readonly request: Report;
}

/** Takes the first of a queue that is not empty, and as many behind it as may go with it. */
function takeTogether(queue: Report[], most: number): Together {
  const first = present(queue.shift(), "report");
  const reports = [first];
  let request = first;
  while (reports.length < most) {
    const [next] = queue;
    const both = next && request.joined?.(next);
    if (next === undefined || both === undefined) break;
    queue.shift();
    reports.push(next);
    request = both;
  }
  return { reports, request };
}

/** A pause that is twice as long each time, until it is reset. */
class GrowingPause {
  readonly #firstMs: number;
  #nextMs: number;
  #endMs = 0;

  constructor(firstMs: number) {
    this.#firstMs = firstMs;
    this.#nextMs = firstMs;
  }

  get leftMs(): number {
    return this.#endMs - performance.now();
  }

  begin(): void {
    this.#endMs = performance.now() + this.#nextMs;
    this.#nextMs = Math.min(this.#nextMs * 2, longestPauseMs);
  }

  reset(): void {
    this.#endMs = 0;
    this.#nextMs = this.#firstMs;
  }
}

interface Failure {
  readonly cause: unknown;
}

async function failureOf(report: Report, timeoutMs: number): Promise<Failure | undefined> {
  try {
    await report.send(AbortSignal.timeout(timeoutMs));
    return undefined;
  } catch (cause) {
    return { cause };
  }
}
