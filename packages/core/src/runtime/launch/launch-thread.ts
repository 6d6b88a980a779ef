/**
 * Starts worker threads as hosts, and owns them. The error event of a thread names the reason of
 * its end; without one it ended by process.exit.
 */
import { MessageChannel, Worker, type WorkerOptions } from "node:worker_threads";
import { expose, wrap } from "comlink";
import type { OutputMessage, OutputStream } from "../../host/output.ts";
import type { HostControl, LauncherControl, ThreadSettings } from "../../host/control.ts";
import type { ResourceLimits } from "../../rpc/directory.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { hostEntry } from "../../shared/own-files.ts";
import { portEndpoint, threadChannel } from "../../transport/thread.ts";
import {
  changesProcess,
  controlUntil,
  type Host,
  HostLostError,
  type HostRequest,
  identityOf,
  type LauncherOptions,
} from "./host.ts";
import { hostEnv } from "./host-env.ts";
import { hostFlags, moduleFlags } from "./host-flags.ts";

/**
 * A thread that reaches its heap limit gets 16 MB more to end in. The content of the young
 * generation must fit in there, or V8 ends the whole process: with Node's 48 MB, 5 of 6 processes
 * ended where twelve threads on a busy machine filled 48 MB each; with 12 MB none of 6 did.
 */
const youngGenerationMb = 12;

function withYoungGeneration(limits: ResourceLimits): ResourceLimits {
  if (limits.maxOldGenerationSizeMb === undefined) return limits;
  return { maxYoungGenerationSizeMb: youngGenerationMb, ...limits };
}

export function launchThread(request: HostRequest, options: LauncherOptions): Host {
  const { nodeId, runtimeEnv } = request;
  const id = newId("host");
  const data = new MessageChannel();
  const control = new MessageChannel();
  const directory = new MessageChannel();
  const settings: ThreadSettings = {
    ...identityOf(id, nodeId, options),
    data: data.port2,
    control: control.port2,
    directory: directory.port2,
    objectStore: options.objectStoreFor(id),
  };
  const { resourceLimits, env } = runtimeEnv ?? {};
  const flags = hostFlags({
    runtimeEnv,
    moduleUrl: request.moduleUrl ?? "",
    directories: [settings.objectStore.spillDirectory],
  });
  const worker = startWorker(id, {
    name: id,
    workerData: settings,
    transferList: [data.port2, control.port2, directory.port2],
    // A thread without flags of its own inherits all flags.
    ...(flags.length === 0 ? {} : { execArgv: [...moduleFlags(process.execArgv), ...flags] }),
    ...(resourceLimits === undefined
      ? {}
      : { resourceLimits: withYoungGeneration(resourceLimits) }),
    env: hostEnv(env),
  });
  // Messages of the user's own code are not for this listener; no other code of this package posts
  // here.
  worker.on("message", (message: unknown) => {
    const output = readOutput(message);
    if (output !== undefined) options.output.text(id, ...output);
  });
  // The call follows the listener, because a listener that is added later holds the process.
  worker.unref();
  let known: DeathCause | undefined;
  const ready = Promise.withResolvers<void>();
  let isReady = !changesProcess(runtimeEnv);
  const exited = new Promise<DeathCause>((resolve) => {
    worker.on("error", (error: unknown) => (known ??= causeOfError(error, isReady)));
    worker.on("exit", (exitCode) => resolve(known ?? causeOfExit(exitCode)));
  });
  const answers: LauncherControl = {
    ...options.controlFor(id),
    ready: () => {
      isReady = true;
      ready.resolve();
    },
    dying: () => undefined,
  };
  const asked = portEndpoint(directory.port1);
  expose(answers, asked);
  directory.port1.unref();
  const asking = portEndpoint(control.port1);
  const remote = wrap<HostControl>(asking);
  control.port1.unref();
  void exited.then(() => {
    asking.end();
    asked.end();
  });
  const use = controlUntil(id, remote, exited);
  const terminate = async (cause: DeathCause): Promise<void> => {
    known ??= cause;
    await worker.terminate();
    await exited;
  };
  return {
    id,
    nodeId,
    isolation: "thread",
    pid: process.pid,
    ready: ready.promise,
    exited,
    channel: threadChannel(data.port1, () => exited, exited),
    control: use,
    terminate,
    async stop(cause) {
      known ??= cause;
      await use((host) => host.stop());
      await terminate(cause);
    },
  };
}

function readOutput(message: unknown): readonly [OutputStream, string, string] | undefined {
  if (!Array.isArray(message) || message[0] !== "output") return undefined;
  const [, stream, owner, text] = message as unknown as OutputMessage;
  return [stream, owner, text];
}

function causeOfExit(exitCode: number): DeathCause {
  return {
    kind: "exited",
    exitCode,
    message: `its worker thread exited with code ${exitCode} (process.exit was called in it)`,
  };
}

/** @throws HostLostError when Node refuses its settings */
function startWorker(id: string, options: WorkerOptions): Worker {
  try {
    return new Worker(hostEntry("thread"), options);
  } catch (error) {
    const { message } = error as Error;
    throw new HostLostError(id, { kind: "runtime-env-failed", message, error: error as Error });
  }
}

function causeOfError(thrown: unknown, isReady: boolean): DeathCause {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if ((error as { code?: string }).code === "ERR_WORKER_OUT_OF_MEMORY") {
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
