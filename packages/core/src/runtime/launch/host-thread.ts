/**
 * A worker thread that runs a host: its start, its output, and its end.
 *
 * The error event of a thread names the reason of its end; without one it ended by process.exit.
 */
import { Worker, type WorkerOptions } from "node:worker_threads";
import type { OutputMessage, OutputSink, OutputStream } from "../../host/output.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { asError, codeOf } from "../../shared/errors/thrown.ts";
import { threadEntry } from "../../shared/compiled/keep-compiled.ts";
import { hostEntry } from "../../shared/own-files.ts";
import { HostLostError } from "./host.ts";

export interface HostThreadRequest {
  readonly id: string;
  readonly options: WorkerOptions;
  /** Whether its settings may keep it from starting. */
  readonly hasSettings: boolean;
  readonly onOutput: OutputSink;
}

export class HostThread {
  /** Resolves with the cause of its end. */
  readonly exited: Promise<DeathCause>;
  readonly #worker: Worker;
  #known: DeathCause | undefined;
  #isReady: boolean;

  /** @throws HostLostError when Node refuses its settings */
  constructor({ id, options, hasSettings, onOutput }: HostThreadRequest) {
    const worker = startWorker(id, options);
    this.#worker = worker;
    this.#isReady = !hasSettings;
    // Messages of the user's own code are not for this listener; no other code of this package
    // posts here.
    worker.on("message", (message: unknown) => {
      if (isOutput(message)) onOutput(message[1], message[2], message[3]);
    });
    // The call follows the listener, because a listener that is added later holds the process.
    worker.unref();
    this.exited = new Promise<DeathCause>((resolve) => {
      worker.on("error", (error: unknown) => this.dying(causeOfError(error, this.#isReady)));
      worker.on("exit", (exitCode) => resolve(this.#known ?? causeOfExit(exitCode)));
    });
  }

  /** Marks it as started: from now on, an end is not caused by its settings. */
  ready(): void {
    this.#isReady = true;
  }

  /** Records why it is about to end; the first reason stays. */
  dying(cause: DeathCause): void {
    this.#known ??= cause;
  }

  /** Stops its JavaScript now; its end waits for a synchronous native call under way. */
  async terminate(cause: DeathCause): Promise<void> {
    this.dying(cause);
    await this.#worker.terminate();
    await this.exited;
  }
}

const streams: ReadonlySet<unknown> = new Set<OutputStream>(["stdout", "stderr"]);

function isOutput(message: unknown): message is OutputMessage {
  if (!Array.isArray(message) || message[0] !== "output") return false;
  const [, stream, owner, text]: readonly unknown[] = message;
  return streams.has(stream) && typeof owner === "string" && typeof text === "string";
}

function startWorker(id: string, options: WorkerOptions): Worker {
  try {
    return new Worker(entryFor(options), options);
  } catch (thrown) {
    const error = asError(thrown);
    throw new HostLostError(id, { kind: "runtime-env-failed", message: error.message, error });
  }
}

/**
 * A thread that may not load addons, as one with permissions, takes core's file itself for its
 * modules: a second copy, if it had begun with the loader.
 */
function entryFor({ execArgv, env }: WorkerOptions): URL {
  const { NODE_OPTIONS: inEnv = "" } = env as NodeJS.ProcessEnv;
  const isLikeDriver = execArgv === undefined && !/addons|permission/.test(inEnv);
  return (isLikeDriver ? threadEntry : undefined) ?? hostEntry("thread");
}

function causeOfExit(exitCode: number): DeathCause {
  return {
    kind: "exited",
    exitCode,
    message: `its worker thread exited with code ${exitCode} (process.exit was called in it)`,
  };
}

function causeOfError(thrown: unknown, isReady: boolean): DeathCause {
  const error = asError(thrown);
  if (codeOf(error) === "ERR_WORKER_OUT_OF_MEMORY") {
    return {
      kind: "out-of-memory",
      message: `its worker thread reached its heap limit (${error.message})`,
      error,
    };
  }
  if (!isReady) {
    const message = `its worker thread did not start: ${error.name}: ${error.message}`;
    return { kind: "runtime-env-failed", message, error };
  }
  return {
    kind: "uncaught-exception",
    message: `uncaught in its worker thread: ${error.name}: ${error.message}`,
    error,
  };
}
