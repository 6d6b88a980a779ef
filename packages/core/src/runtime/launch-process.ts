/**
 * Starts child processes as hosts, and owns them.
 *
 * A process inherits two sockets: its session with the driver, and the control of both (no path, no token: nobody else can have them). It is the leader of a
 * process group of its own, so that what it started ends with it and signals of a terminal do not reach it. Its output goes line by line to `output`; the last lines
 * it wrote to stderr are part of the cause of its death.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { expose, wrap } from "comlink";
import {
  type HostControl,
  inherited,
  type LauncherControl,
  type ProcessSettings,
  processVariable,
} from "../host/control.ts";
import { readMark } from "../host/output.ts";
import { causeFromData } from "../protocol/cause.ts";
import type { ResourceLimits } from "../rpc/directory.ts";
import { type DeathCause, RaySystemError } from "../shared/errors.ts";
import { newId } from "../shared/ids.ts";
import { channelEndpoint } from "../transport/endpoint.ts";
import { SocketChannel } from "../transport/socket.ts";
import type { Guard } from "./guard.ts";
import {
  controlUntil,
  hasSettings,
  type Host,
  type HostRequest,
  type LauncherOptions,
} from "./host.ts";
import { hostEnv } from "./host-env.ts";
import { hostFlags } from "./host-flags.ts";
import { LastLines, readLines } from "./lines.ts";

const entry: string = fileURLToPath(
  new URL(`../host/process-main${import.meta.url.slice(-3)}`, import.meta.url),
);

/** How long a process may live whose sockets are closed, and its sockets and output after its end. */
const lingerMs = 1000;

export function launchProcess(request: HostRequest, options: LauncherOptions, guard: Guard): Host {
  const { nodeId, runtimeEnv } = request;
  const id = newId("host");
  const objectStore = options.objectStoreFor(id);
  const settings: ProcessSettings = {
    hostId: id,
    nodeId,
    nodeLabels: options.labelsOf(nodeId),
    driverId: options.driverId,
    jobId: options.jobId,
    namespace: options.namespace,
    inside: options.inside,
    folder: guard.folder,
    spillDirectory: objectStore.spillDirectory,
    isDevelopment: objectStore.isDevelopment,
    objectStoreMemory: objectStore.budget.limitBytes,
  };
  const child = spawn(
    process.execPath,
    [
      ...passedOn(process.execArgv),
      ...limitFlags(runtimeEnv?.resourceLimits),
      ...hostFlags({
        runtimeEnv,
        moduleUrl: request.moduleUrl ?? "",
        directories: [guard.folder, settings.spillDirectory],
      }),
      entry,
    ],
    {
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
      env: { ...hostEnv(runtimeEnv?.env), [processVariable]: JSON.stringify(settings) },
    },
  );
  child.unref();
  const { pid } = child;
  if ((child.stdio as unknown) === undefined) {
    // It fails before it has any: there are no more files to be had.
    child.on("error", () => undefined);
    throw new RaySystemError("a process cannot be started: too many files are open");
  }
  if (pid !== undefined) guard.watch(pid);

  let known: DeathCause | undefined;
  const ready = Promise.withResolvers<void>();
  let isReady = !hasSettings(runtimeEnv);
  const lastLines = new LastLines();
  const outputEnded = readOutput(child, id, options, lastLines);
  let hasEnded = false;
  const exited = ended(child).then(async (end) => {
    hasEnded = true;
    data.peerGone();
    if (pid !== undefined) {
      guard.forget(pid);
      killGroup(pid);
    }
    // What it said last is on its way: the control may name the cause, and stderr belongs to it.
    const late = pause(lingerMs);
    await Promise.race([Promise.all([control.closed, outputEnded]), late.over]);
    late.end();
    closeSockets();
    const cause = known ?? causeOfEnd(end, lastLines);
    return isReady || cause.kind !== "exited" ? cause : notReady(cause);
  });

  const sockets = [child.stdio[inherited.data], child.stdio[inherited.control]] as Socket[];
  const [dataSocket, controlSocket] = sockets as [Socket, Socket];
  const closeSockets = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  // Whatever broke, one that cannot be talked to is ended.
  for (const socket of sockets) {
    socket.once("close", () => {
      setTimeout(() => void terminate(unreachable), lingerMs).unref();
    });
  }
  const peer = `host ${id}`;
  const data = new SocketChannel(dataSocket, { peer, explain: () => exited });
  const control = new SocketChannel(controlSocket, { peer, explain: async () => unreachable });
  const endpoint = channelEndpoint(control);
  const answers: LauncherControl = {
    ...options.controlFor(id),
    ready: () => {
      isReady = true;
      ready.resolve();
    },
    dying: (cause) => void (known ??= causeFromData(cause)),
  };
  expose(answers, endpoint);
  const use = controlUntil(id, wrap<HostControl>(endpoint), exited);

  const terminate = async (cause: DeathCause): Promise<void> => {
    if (!hasEnded) {
      known ??= cause;
      // Whoever waits for its end is to see it.
      child.ref();
      if (pid !== undefined) killGroup(pid);
    }
    await exited;
  };
  return {
    id,
    nodeId,
    isolation: "process",
    pid,
    ready: ready.promise,
    exited,
    channel: data,
    control: use,
    terminate,
    async stop(cause) {
      known ??= cause;
      await use((host) => host.stop());
      await terminate(cause);
    },
  };
}

function notReady(cause: DeathCause): DeathCause {
  return { ...cause, kind: "runtime-env-failed", message: `before it was ready, ${cause.message}` };
}

const unreachable: DeathCause = { kind: "unreachable", message: "its sockets closed" };

interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

function ended(child: ChildProcess): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    child.on("error", (error) => {
      if (child.pid === undefined) resolve({ exitCode: null, signal: null, error });
    });
  });
}

function causeOfEnd({ exitCode, signal, error }: ProcessEnd, lastLines: LastLines): DeathCause {
  const stderr = lastLines.lines;
  const said = stderr.length === 0 ? "" : `; its last lines on stderr:\n${stderr.join("\n")}`;
  if (error !== undefined) {
    return { kind: "unreachable", message: `its process did not start: ${error.message}`, error };
  }
  // V8 aborts at the limit: SIGABRT, or 134 where a shell stands between.
  if ((signal === "SIGABRT" || exitCode === 134) && lastLines.heapLimit !== undefined) {
    return {
      kind: "out-of-memory",
      message: `its process reached its heap limit (${lastLines.heapLimit})`,
      stderr,
      ...(signal === null ? {} : { signal }),
    };
  }
  if (signal !== null) {
    return { kind: "signal", signal, message: `its process was ended by ${signal}${said}`, stderr };
  }
  return {
    kind: "exited",
    exitCode: exitCode ?? -1,
    message: `its process exited with code ${exitCode}${said}`,
    stderr,
  };
}

/** The process and what it started. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // Nobody is left in it, which is what is wanted.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function readOutput(
  child: ChildProcess,
  hostId: string,
  options: LauncherOptions,
  lastLines: LastLines,
): Promise<unknown> {
  const ends = (["stdout", "stderr"] as const).map((stream) => {
    const output = child[stream] as Socket;
    readLines(output, (line) => {
      const { owner, text } = readMark(line);
      if (stream === "stderr") lastLines.add(text);
      options.output.line(hostId, stream, owner, text);
    });
    output.unref();
    return once(output, "close");
  });
  return Promise.all(ends);
}

/** Flags of this process that its hosts are to have too: not those that say what to run or where to listen for a debugger. */
function passedOn(execArgv: readonly string[]): string[] {
  const flags: string[] = [];
  for (let index = 0; index < execArgv.length; index++) {
    const flag = execArgv[index] as string;
    if (/^(-e|-p|-pe|--eval|--print|--inspect-port|--debug-port)$/.test(flag)) index += 1;
    else if (!/^(-i|--interactive|--input-type|--inspect|--watch|--test|--run)\b/.test(flag))
      flags.push(flag);
  }
  return flags;
}

/** Limits of a worker thread, as flags of a process. The young generation has three halves of a semi-space. */
function limitFlags(limits: ResourceLimits | undefined): string[] {
  const {
    maxOldGenerationSizeMb: old,
    maxYoungGenerationSizeMb: young,
    stackSizeMb,
  } = limits ?? {};
  return [
    ...(old === undefined ? [] : [`--max-old-space-size=${Math.ceil(old)}`]),
    ...(young === undefined ? [] : [`--max-semi-space-size=${Math.max(1, Math.floor(young / 3))}`]),
    ...(stackSizeMb === undefined ? [] : [`--stack-size=${Math.floor(stackSizeMb * 1024)}`]),
  ];
}

function pause(ms: number): { readonly over: Promise<void>; readonly end: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  return { over: promise, end: () => clearTimeout(timer) };
}
