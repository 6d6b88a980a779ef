/**
 * The first seam: turns a wish for a host into a running one with its channel and control.
 *
 * This launcher starts worker threads and owns them. A few are started ahead of need, because a thread takes tens of milliseconds to be ready.
 * A host's death always has a cause, and a control call that was pending then rejects with it.
 */
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { type Remote, transfer, wrap, expose } from "comlink";
import type {
  DriverControl,
  HostControl,
  HostSettings,
  ObjectStoreShare,
} from "../host/control.ts";
import type { ResourceLimits } from "../rpc/directory.ts";
import { type DeathCause, RaySystemError } from "../shared/errors.ts";
import { newId } from "../shared/ids.ts";
import type { Channel } from "../transport/channel.ts";
import { threadChannel } from "../transport/thread.ts";

export interface HostRequest {
  /** The node that it belongs to and ends with. */
  readonly nodeId: string;
  readonly resourceLimits: ResourceLimits | undefined;
  readonly env: Readonly<Record<string, string>> | undefined;
}

export interface Host {
  readonly id: string;
  readonly nodeId: string;
  readonly channel: Channel;
  /** Calls the host's control; rejects with the cause if the host dies first. */
  readonly control: <T>(use: (control: Remote<HostControl>) => Promise<T>) => Promise<T>;
  readonly exited: Promise<DeathCause>;
  /** Lets it send what is ready, then ends it. */
  stop(cause: DeathCause): Promise<void>;
  /** Ends it now; the first cause given is the one that counts. */
  terminate(cause: DeathCause): Promise<void>;
}

export interface LauncherOptions {
  readonly driverId: string;
  readonly namespace: string;
  /** The driver's own node, on which threads stand ready. */
  readonly nodeId: string;
  /** How many threads stand ready. */
  readonly prewarm: number;
  /** A host's part in the object store. */
  readonly objectStoreFor: (hostId: string) => ObjectStoreShare;
  /** The driver's answers to one host. */
  readonly controlFor: (hostId: string) => DriverControl;
  /** Called once for each host, before anybody uses it. */
  readonly onLaunch: (host: Host) => void;
}

export class ThreadLauncher {
  readonly #options: LauncherOptions;
  readonly #hosts: Set<Host> = new Set();
  readonly #warm: Host[] = [];
  #open = true;

  constructor(options: LauncherOptions) {
    this.#options = options;
    this.warmUp();
  }

  /** A host for one actor or for tasks: one that stands ready, unless it needs settings of its own. */
  take(request: HostRequest): Host {
    if (!this.#open) throw new RaySystemError("the runtime is shut down");
    const { nodeId, resourceLimits, env } = request;
    if (nodeId !== this.#options.nodeId || resourceLimits !== undefined || env !== undefined)
      return this.#launch(request);
    return this.#warm.shift() ?? this.#launch(request);
  }

  /** Makes up for what was taken. Called when the taker is ready, because starting a thread slows the one that starts beside it. */
  warmUp(): void {
    while (this.#open && this.#warm.length < this.#options.prewarm) {
      const { nodeId } = this.#options;
      const host = this.#launch({ nodeId, resourceLimits: undefined, env: undefined });
      this.#warm.push(host);
      void host.exited.then(() => {
        const index = this.#warm.indexOf(host);
        if (index >= 0) this.#warm.splice(index, 1);
      });
    }
  }

  /** Ends the hosts of one node. */
  async endNode(nodeId: string, cause: DeathCause): Promise<void> {
    const hosts = [...this.#hosts].filter((host) => host.nodeId === nodeId);
    await Promise.all(hosts.map((host) => host.terminate(cause)));
  }

  /** Ends all hosts; resolves when no thread is left. */
  async close(cause: DeathCause): Promise<void> {
    this.#open = false;
    await Promise.all([...this.#hosts].map((host) => host.terminate(cause)));
  }

  #launch(request: HostRequest): Host {
    const host = launchThread(request, this.#options);
    this.#hosts.add(host);
    void host.exited.then(() => this.#hosts.delete(host));
    this.#options.onLaunch(host);
    return host;
  }
}

/** `thread-main.ts` in the workspace, `thread-main.js` when installed: Node does not strip types below node_modules, and tsc does not rewrite this URL. */
const entry: URL = new URL(`../host/thread-main${import.meta.url.slice(-3)}`, import.meta.url);

function launchThread(request: HostRequest, options: LauncherOptions): Host {
  const id = newId("host");
  const data = new MessageChannel();
  const control = new MessageChannel();
  const directory = new MessageChannel();
  const settings: HostSettings = {
    hostId: id,
    nodeId: request.nodeId,
    driverId: options.driverId,
    namespace: options.namespace,
    data: data.port2,
    control: control.port2,
    directory: directory.port2,
    objectStore: options.objectStoreFor(id),
  };
  const worker = new Worker(entry, {
    name: id,
    workerData: settings,
    transferList: [data.port2, control.port2, directory.port2],
    ...(request.resourceLimits === undefined ? {} : { resourceLimits: request.resourceLimits }),
    ...(request.env === undefined ? {} : { env: { ...process.env, ...request.env } }),
  });
  worker.unref();
  let known: DeathCause | undefined;
  const exited = new Promise<DeathCause>((resolve) => {
    worker.on("error", (error: unknown) => (known ??= causeOfError(error)));
    worker.on("exit", (exitCode) => resolve(known ?? causeOfExit(exitCode)));
  });
  expose(options.controlFor(id), directory.port1);
  directory.port1.unref();
  const remote = wrap<HostControl>(control.port1);
  control.port1.unref();
  const closePorts = (): void => {
    control.port1.close();
    directory.port1.close();
  };
  void exited.then(closePorts);
  const use = <T>(call: (control: Remote<HostControl>) => Promise<T>): Promise<T> =>
    Promise.race([call(remote), exited.then((cause) => rejectWith(id, cause))]);
  const terminate = async (cause: DeathCause): Promise<void> => {
    known ??= cause;
    await worker.terminate();
    await exited;
  };
  return {
    id,
    nodeId: request.nodeId,
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

function causeOfExit(exitCode: number): DeathCause {
  return {
    kind: "exited",
    exitCode,
    message: `its worker thread exited with code ${exitCode} (process.exit was called in it)`,
  };
}

function causeOfError(thrown: unknown): DeathCause {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if ((error as { code?: string }).code === "ERR_WORKER_OUT_OF_MEMORY") {
    return {
      kind: "out-of-memory",
      message: `its worker thread reached its heap limit (${error.message})`,
      error,
    };
  }
  return {
    kind: "uncaught-exception",
    message: `uncaught in its worker thread: ${error.name}: ${error.message}`,
    error,
  };
}

function rejectWith(hostId: string, cause: DeathCause): never {
  throw new HostLostError(hostId, cause);
}

/** A control call found its host dead. */
export class HostLostError extends RaySystemError {
  readonly deathCause: DeathCause;
  constructor(hostId: string, deathCause: DeathCause) {
    super(`host ${hostId} is gone: ${deathCause.message}`);
    this.deathCause = deathCause;
  }
}

/** A direct way between two hosts: one port is handed to `to`, the other returned for the asker. */
export function joinHosts(fromHostId: string, to: Host): MessagePort {
  const { port1, port2 } = new MessageChannel();
  to.control((control) => control.accept(fromHostId, transfer(port1, [port1]) as never)).catch(() =>
    port2.close(),
  );
  return transfer(port2, [port2]);
}
