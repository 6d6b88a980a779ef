/**
 * Sends the reports of a logger to a server, in order and in the background.
 *
 * A server that does not answer holds nobody up: reports are kept, up to a limit, and sent again
 * after pauses that grow. A report that the server refuses, or that finds no place, is lost; lost
 * values are counted.
 */

/** One request. */
export interface Report {
  /** Number of values in it, for the count of lost ones. */
  readonly values: number;
  /** Rejects with RefusedReport where another attempt would fail too. */
  send(signal: AbortSignal): Promise<void>;
}

/** The server refused a report: another attempt would fail too. */
export class RefusedReport extends Error {
  override readonly name = "RefusedReport";
}

export interface DeliverySettings {
  /** Called when sending fails after it went well, and when values are lost. */
  readonly warn: (problem: string, cause?: unknown) => void;
  /** First pause after a failure; each further one is twice as long, up to 30 seconds. */
  readonly pauseMs: number;
  /** Values that are kept while the server does not answer. */
  readonly maxKept: number;
}

/** Attempts for a report after the end of a run. */
const lastAttempts = 2;
const longestPauseMs = 30_000;
const requestTimeoutMs = 10_000;

export class Delivery {
  readonly #settings: DeliverySettings;
  readonly #kept: Report[] = [];
  #keptValues = 0;
  #lost = 0;
  #refusal: unknown;
  #isFailing = false;
  #sending: Promise<void> | undefined;
  #ending: { attempts: number } | undefined;
  #wake: (() => void) | undefined;

  constructor(settings: DeliverySettings) {
    this.#settings = settings;
  }

  /** Number of values that were not delivered and will not be. */
  get lost(): number {
    return this.#lost;
  }

  add(report: Report): void {
    const { maxKept } = this.#settings;
    if (this.#keptValues + report.values > maxKept) {
      this.#lose(report, `more than ${maxKept} values wait to be sent`);
      return;
    }
    this.#kept.push(report);
    this.#keptValues += report.values;
    this.#sending ??= this.#sendAll();
  }

  /** Sends what is left, in a few attempts; resolves when all of it is delivered or lost. */
  async close(): Promise<void> {
    this.#ending = { attempts: lastAttempts };
    this.#wake?.();
    await this.#sending;
    if (this.#lost > 0) this.#settings.warn(`${this.#lost} values were not delivered`);
  }

  async #sendAll(): Promise<void> {
    let pauseMs = this.#settings.pauseMs;
    for (;;) {
      const report = this.#kept[0];
      if (report === undefined) {
        // In this turn: a report that is added in the next one has to be sent, too.
        this.#sending = undefined;
        return;
      }
      const failure = await failureOf(report);
      if (failure === undefined) {
        this.#isFailing = false;
        pauseMs = this.#settings.pauseMs;
        this.#drop(report);
      } else if (failure.cause instanceof RefusedReport) {
        this.#drop(report);
        this.#lose(report, failure.cause);
      } else {
        this.#tellFailure(failure.cause);
        if (this.#isLastAttempt()) {
          this.#sending = undefined;
          this.#loseAll(failure.cause);
          return;
        }
        await this.#pause(this.#ending === undefined ? pauseMs : this.#settings.pauseMs);
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      }
    }
  }

  #isLastAttempt(): boolean {
    if (this.#ending === undefined) return false;
    this.#ending.attempts -= 1;
    return this.#ending.attempts <= 0;
  }

  #drop(report: Report): void {
    this.#kept.shift();
    this.#keptValues -= report.values;
  }

  #loseAll(cause: unknown): void {
    for (const report of this.#kept.splice(0)) this.#lose(report, cause);
    this.#keptValues = 0;
  }

  /** Warns of the first loss; the others are in the count at the end. */
  #lose({ values }: Report, why: unknown): void {
    this.#lost += values;
    if (this.#refusal !== undefined) return;
    this.#refusal = why;
    if (typeof why === "string") this.#settings.warn(`values are lost: ${why}`);
    else this.#settings.warn("values are lost", why);
  }

  #tellFailure(cause: unknown): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#settings.warn("it does not answer; reports are kept and sent again", cause);
  }

  /** Ends early where the run ends. */
  async #pause(ms: number): Promise<void> {
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

async function failureOf(report: Report): Promise<{ readonly cause: unknown } | undefined> {
  try {
    await report.send(AbortSignal.timeout(requestTimeoutMs));
    return undefined;
  } catch (cause) {
    return { cause };
  }
}
