/**
 * verl's Tracking: passes the reports of a run to each logger, in order, while training goes on.
 *
 * Nothing here throws into the training loop or holds it up. A logger that fails is left out from
 * then on, with one warning that names it; a logger that does not end is abandoned when the run
 * closes.
 */

import { resolve } from "node:path";
import { TrackingError } from "../errors.ts";
import type { TrackingErrorCode } from "../errors.ts";
import { makeFolder } from "../values/make-folder.ts";
import { secretsIn, withoutSecrets } from "../values/without-secrets.ts";
import { commandText } from "./files/run-start.ts";
import { writtenSettings } from "./files/run-lines.ts";
import { chosenGenerations } from "./generations.ts";
import { loggersOf } from "./loggers.ts";
import type { LoggerName } from "./loggers.ts";
import type {
  Generation,
  PhaseRecord,
  RunEnd,
  SampleRecord,
  StepMetrics,
  TrackedRun,
  TrackingConfig,
  TrackingLogger,
  TrainingProgress,
} from "./tracking-logger.ts";
import { currentTracing } from "@rayling/core";
import { warn } from "@rayling/core/terminal";
import { SpanLogger } from "./span-logger.ts";

/** Run and loggers of a `Tracking`. */
export interface TrackingOptions {
  /** verl `trainer.logger`. Default console. */
  readonly logger?: LoggerName | readonly LoggerName[];
  /**
   * Whether the logger console prints verl's line of all metrics for each step. Default false: a
   * short one.
   */
  readonly verbose?: boolean | undefined;
  /** Further ones, of the caller's own. */
  readonly loggers?: readonly TrackingLogger[];
  /** verl `trainer.project_name`. */
  readonly projectName: string;
  /** verl `trainer.experiment_name`. */
  readonly experimentName: string;
  /**
   * Folder of this run's files; it is created if missing, and stays where it is when the process
   * changes its directory. Default runs/{projectName}/{experimentName}. A resumed run appends to
   * its files.
   */
  readonly directory?: string;
  /** Number of steps, if it is known. */
  readonly totalSteps?: number;
  /**
   * Settings of the run, for loggers that show them. No logger receives what is named as a key,
   * token or password in them. Numbers that are not finite are their texts: "Infinity", "NaN".
   */
  readonly config?: TrackingConfig;
  /**
   * verl `trainer.log_val_generations`: number of answers of each validation that are reported.
   * Default 0.
   */
  readonly logValGenerations?: number;
  /** Called for each failure of a logger. Default: a warning of the process. */
  readonly onWarning?: (warning: TrackingError) => void;
  /** Time for loggers to write their last reports at `close`, in milliseconds. Default 30,000. */
  readonly closeTimeoutMs?: number;
  /**
   * Default: the time of the machine when the process began, and its monotonic clock from there.
   */
  readonly now?: () => number;
}

/** Passes the reports of a run to its loggers. A logger that fails receives no further ones. */
export class Tracking implements AsyncDisposable {
  /** Names, folder and length of the run. */
  readonly run: TrackedRun;
  readonly #loggers: readonly QueuedLogger[];
  readonly #generations: number;
  readonly #closeTimeoutMs: number;
  readonly #now: () => number;
  #closing: Promise<void> | undefined;

  private constructor(run: TrackedRun, loggers: readonly QueuedLogger[], options: TrackingOptions) {
    this.run = run;
    this.#loggers = loggers;
    this.#generations = options.logValGenerations ?? 0;
    this.#closeTimeoutMs = options.closeTimeoutMs ?? 30_000;
    this.#now = options.now ?? (() => performance.timeOrigin + performance.now());
  }

  /**
   * Rejects with TrackingError for a logger that is unknown or cannot begin; loggers that had begun
   * are closed.
   */
  static async open(options: TrackingOptions): Promise<Tracking> {
    const { projectName, experimentName, totalSteps, config } = options;
    // Once: a program may change its directory while it trains.
    const directory = resolve(options.directory ?? `runs/${projectName}/${experimentName}`);
    const { logger = "console", loggers = [], onWarning = warnProcess } = options;
    const { verbose } = options;
    const named = loggersOf(typeof logger === "string" ? [logger] : logger, { verbose });
    const all = [...named, ...loggers, ...spanLoggers()];
    const run: TrackedRun = {
      projectName,
      experimentName,
      directory,
      totalSteps,
      // Here, once: what is secret reaches no logger, neither ours nor the caller's.
      config: config === undefined ? undefined : writtenSettings(withoutSecrets(config)),
      command: commandText(process.argv, secretsIn(config ?? {})),
    };
    await madeDirectory(directory);
    const queued = all.map((one) => new QueuedLogger(one, onWarning));
    const tracking = new Tracking(run, queued, options);
    for (const one of queued) {
      try {
        await one.open(run);
      } catch (error) {
        await tracking.close({ error });
        throw error;
      }
    }
    return tracking;
  }

  /** For the times of phases and samples. */
  now(): number {
    return this.#now();
  }

  /** Reports the metrics of a step. */
  log(metrics: StepMetrics, step: number): void {
    const own = { ...metrics };
    this.#report((logger) => logger.log?.(own, step));
  }

  /** Reports a phase that ended. */
  phase(phase: PhaseRecord): void {
    this.#report((logger) => logger.phase?.(phase));
  }

  /** Reports all samples of a step. */
  samples(step: number, samples: readonly SampleRecord[]): void {
    this.#report((logger) => logger.samples?.(step, samples));
  }

  /** Reports `logValGenerations` of the rows of a validation. */
  generations(step: number, generations: readonly Generation[]): void {
    const chosen = chosenGenerations(generations, this.#generations);
    if (chosen.length > 0) this.#report((logger) => logger.generations?.(step, chosen));
  }

  /** Reports the current phase. */
  progress(progress: TrainingProgress): void {
    this.#report((logger) => logger.progress?.(progress));
  }

  /** Reports a warning of the training. @param step the step that it is about */
  warning(step: number, message: string): void {
    this.#report((logger) => logger.warning?.(step, message));
  }

  /**
   * Never rejects: failures are reported as warnings. Every call returns the same promise.
   *
   * @param end why the run failed, if it did; loggers that have a status show it
   */
  close(end: RunEnd = {}): Promise<void> {
    this.#closing ??= this.#closeAll(end);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #report(what: (logger: TrackingLogger) => void | Promise<void>): void {
    if (this.#closing !== undefined) return;
    for (const one of this.#loggers) one.report(what);
  }

  /** One after the other: some read the files of others. */
  async #closeAll(end: RunEnd): Promise<void> {
    for (const one of this.#loggers) await one.close(end, this.#closeTimeoutMs);
  }
}

/** A logger with the queue of its reports. */
class QueuedLogger {
  readonly #logger: TrackingLogger;
  readonly #onWarning: (warning: TrackingError) => void;
  #state: "new" | "open" | "failed" | "closed" = "new";
  #last: Promise<void> = Promise.resolve();

  constructor(logger: TrackingLogger, onWarning: (warning: TrackingError) => void) {
    this.#logger = logger;
    this.#onWarning = onWarning;
  }

  async open(run: TrackedRun): Promise<void> {
    try {
      await this.#logger.open?.(run, (problem, cause) =>
        this.#warn("TRACKING_INCOMPLETE", problem, cause),
      );
      this.#state = "open";
    } catch (cause) {
      throw new TrackingError("TRACKING_OPEN", this.#logger.name, "it cannot begin", cause);
    }
  }

  report(what: (logger: TrackingLogger) => void | Promise<void>): void {
    if (this.#state !== "open") return;
    this.#last = this.#last.then(() => this.#do(what));
  }

  async close(end: RunEnd, timeoutMs: number): Promise<void> {
    if (this.#state === "new") return;
    const timeout = Promise.withResolvers<"late">();
    const timer = setTimeout(() => timeout.resolve("late"), timeoutMs);
    const closed = this.#last.then(() => this.#end(end));
    const outcome = await Promise.race([closed, timeout.promise]);
    clearTimeout(timer);
    if (outcome === "late") this.#fail(`it took more than ${timeoutMs} ms to end`);
    this.#state = "closed";
  }

  async #do(what: (logger: TrackingLogger) => void | Promise<void>): Promise<void> {
    if (this.#state !== "open") return;
    try {
      await what(this.#logger);
    } catch (cause) {
      this.#fail("it failed, and receives nothing more", cause);
    }
  }

  async #end(end: RunEnd): Promise<void> {
    try {
      await this.#logger.close?.(end);
    } catch (cause) {
      this.#fail("it did not end well", cause);
    }
  }

  /** A logger that failed fails again when it is closed: one warning is enough. */
  #fail(problem: string, cause?: unknown): void {
    if (this.#state !== "open") return;
    this.#state = "failed";
    this.#warn("TRACKING_FAILED", problem, cause);
  }

  #warn(code: TrackingErrorCode, problem: string, cause?: unknown): void {
    const warning = new TrackingError(code, this.#logger.name, problem, cause);
    try {
      this.#onWarning(warning);
    } catch {
      // The handler of warnings failed: the process still gets the warning.
      warnProcess(warning);
    }
  }
}

/** Steps are spans where the user provides OpenTelemetry, whatever the loggers. */
function spanLoggers(): readonly TrackingLogger[] {
  const tracing = currentTracing();
  return tracing === undefined ? [] : [new SpanLogger(tracing)];
}

async function madeDirectory(directory: string): Promise<void> {
  try {
    await makeFolder(directory);
  } catch (cause) {
    throw new TrackingError("TRACKING_OPEN", "directory", `${directory} cannot be made`, cause);
  }
}

function warnProcess(warning: TrackingError): void {
  warn(warning);
}
