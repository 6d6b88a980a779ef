/**
 * Starts hosts as threads of the driver's process: they get their channels as ports. host-thread
 * knows how a thread starts and ends.
 */
import { MessageChannel, type MessagePort, type WorkerOptions } from "node:worker_threads";
import { expose, type Remote, wrap } from "comlink";
import type { HostControl, LauncherControl, ThreadSettings } from "../../host/host-control.ts";
import type { ResourceLimits } from "../../rpc/directory.ts";
import { compiledForThreads } from "../../shared/compiled/keep-compiled.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { portEndpoint, threadChannel } from "../../transport/thread.ts";
import {
  changesProcess,
  controlUntil,
  type Host,
  type HostRequest,
  identityOf,
  type LauncherOptions,
} from "./host.ts";
import { hostEnv } from "./host-env.ts";
import { hostFlags, threadFlags } from "./host-flags.ts";
import { HostThread } from "./host-thread.ts";

/**
 * A thread that reaches its heap limit gets 16 MB more to end in. The content of the young
 * generation must fit in there, or V8 ends the whole process: with Node's 48 MB, 5 of 6 processes
 * ended where twelve threads on a busy machine filled 48 MB each; with 12 MB none of 6 did.
 */
const limitedYoungMb = 12;

/**
 * The limit of other threads: half of Node 22's. In Node 24 a young generation grows to 192 MB, and
 * V8 keeps it: 128 MB stay resident in each thread in which many objects once lived for a while.
 * Measured with 24 in place of 48: three threads of a reward loop hold 35 MB less while 100,000
 * samples wait, and calls in flight, scores and parsed documents of 20 KB to 4 MB take the same CPU
 * time (with 12, documents of 1 MB take a quarter more).
 */
const youngMb = 24;

/** @throws HostLostError when Node refuses the settings of the thread */
export function launchThread(request: HostRequest, options: LauncherOptions): Host {
  const { nodeId, runtimeEnv } = request;
  const id = newId("host");
  const data = new MessageChannel();
  const control = new MessageChannel();
  const directory = new MessageChannel();
  const compiled = compiledForThreads();
  const settings: ThreadSettings = {
    ...identityOf(id, nodeId, options),
    ...(compiled === undefined ? {} : { compiled }),
    data: data.port2,
    control: control.port2,
    directory: directory.port2,
    objectStore: options.objectStoreFor(id),
  };
  const thread = new HostThread({
    id,
    options: workerOptions(settings, request),
    hasSettings: changesProcess(runtimeEnv),
    onOutput: (...output) => options.output.text(id, ...output),
  });
  const { exited } = thread;
  const ready = Promise.withResolvers<void>();
  const answers: LauncherControl = {
    ...options.controlFor(id),
    ready: () => {
      thread.ready();
      ready.resolve();
    },
    dying: () => undefined,
  };
  answer(directory.port1, answers, exited);
  const use = controlUntil(id, remoteControl(control.port1, exited), exited);
  return {
    id,
    nodeId,
    isolation: "thread",
    pid: process.pid,
    ready: ready.promise,
    exited,
    channel: threadChannel(data.port1, () => exited, exited),
    control: use,
    terminate: (cause) => thread.terminate(cause),
    async stop(cause) {
      thread.dying(cause);
      await use((host) => host.stop());
      await thread.terminate(cause);
    },
  };
}

function workerOptions(
  settings: ThreadSettings,
  { runtimeEnv, moduleUrl = "" }: HostRequest,
): WorkerOptions {
  const { resourceLimits, env } = runtimeEnv ?? {};
  const directories = [settings.objectStore.spillDirectory];
  const own = hostFlags({ runtimeEnv, moduleUrl, directories });
  const execArgv = threadFlags(process.execArgv, own);
  return {
    name: settings.hostId,
    workerData: settings,
    transferList: [settings.data, settings.control, settings.directory],
    ...(execArgv === undefined ? {} : { execArgv }),
    resourceLimits: withYoungGeneration(resourceLimits),
    env: hostEnv(env),
  };
}

/** The flag --max-semi-space-size of the program counts for its threads, too: V8 prefers it. */
function withYoungGeneration(limits: ResourceLimits = {}): ResourceLimits {
  const isLimited = limits.maxOldGenerationSizeMb !== undefined;
  const maxYoungGenerationSizeMb = isLimited ? limitedYoungMb : youngMb;
  return { maxYoungGenerationSizeMb, ...limits };
}

/** Answers the thread's calls over that port until the thread ends. */
function answer(port: MessagePort, answers: LauncherControl, exited: Promise<DeathCause>): void {
  const endpoint = portEndpoint(port);
  expose(answers, endpoint);
  port.unref();
  void exited.then(() => endpoint.end());
}

/** Returns the thread's control over that port, which is closed when the thread ends. */
function remoteControl(port: MessagePort, exited: Promise<DeathCause>): Remote<HostControl> {
  const endpoint = portEndpoint(port);
  const remote = wrap<HostControl>(endpoint);
  port.unref();
  void exited.then(() => endpoint.end());
  return remote;
}
