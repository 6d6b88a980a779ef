/**
 * The contract of launchers, the first seam: a wish for a host becomes a running one with its channel and its control.
 *
 * A host's death always has a cause, and a control call that was pending then rejects with it.
 */
import type { Labels } from "../../placement/labels.ts";
import type { Remote } from "comlink";
import type {
  DriverControl,
  HostControl,
  HostIdentity,
  InsideSettings,
  ObjectStoreShare,
} from "../../host/control.ts";
import type { OutputStream } from "../../host/output.ts";
import { ownProgram } from "../../host/code/program.ts";
import type { RuntimeEnv } from "../../rpc/directory.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import type { Channel } from "../../transport/channel.ts";
import type { NetworkSettings } from "../../transport/address.ts";

export interface HostRequest {
  /** The node that it belongs to and ends with. */
  readonly nodeId: string;
  readonly isolation: "thread" | "process";
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The module it is started for, if that is known. */
  readonly moduleUrl?: string;
}

export interface Host {
  readonly id: string;
  readonly nodeId: string;
  readonly isolation: "thread" | "process";
  /** On another machine than the driver's: whoever wants a channel to it dials it. */
  readonly isRemote?: boolean;
  /** Of the process it is in. */
  readonly pid: number | undefined;
  readonly channel: Channel;
  /** Calls the host's control; rejects with the cause if the host dies first. */
  readonly control: <T>(use: (control: Remote<HostControl>) => Promise<T>) => Promise<T>;
  /** Resolves when it runs and may be given work; may never do, for one that ends first. */
  readonly ready: Promise<void>;
  readonly exited: Promise<DeathCause>;
  /** Resolves when what it needs before it is started is on its machine, with the cause of its end if that cannot be. None: it needs nothing. */
  readonly prepared?: Promise<DeathCause | undefined>;
  /** Lets it send what is ready, then ends it. */
  stop(cause: DeathCause): Promise<void>;
  /** Ends it now; the first cause given is the one that counts. */
  terminate(cause: DeathCause): Promise<void>;
}

export interface LauncherOptions {
  readonly driverId: string;
  readonly jobId: string;
  readonly namespace: string;
  /** The driver's own node, on which threads stand ready. */
  readonly nodeId: string;
  readonly labelsOf: (nodeId: string) => Labels;
  /** How many threads stand ready. */
  readonly prewarm: number;
  readonly inside: InsideSettings;
  /** For all hosts; what a host asks for itself is stronger. */
  readonly runtimeEnv: RuntimeEnv | undefined;
  readonly network: NetworkSettings;
  /** What the user wants each host to keep in memory, if anything was said. */
  readonly objectStoreMemory: number | undefined;
  /** A host's part in the object store. */
  readonly objectStoreFor: (hostId: string) => ObjectStoreShare;
  /** The driver's answers to one host. */
  readonly controlFor: (hostId: string) => DriverControl;
  /** Called once for each host, before anybody uses it. */
  readonly onLaunch: (host: Host) => void;
  /** Takes what hosts write. */
  readonly output: HostOutput;
}

/** What a host is told about itself. */
export function identityOf(hostId: string, nodeId: string, options: LauncherOptions): HostIdentity {
  const { driverId, jobId, namespace, inside, network } = options;
  const nodeLabels = options.labelsOf(nodeId);
  const program = ownProgram();
  return { hostId, nodeId, nodeLabels, driverId, jobId, namespace, inside, network, program };
}

/** Where what hosts write goes: a thread's text as it comes, a process's line by line; `owner` is the actor or task, or "". */
export interface HostOutput {
  text(hostId: string, stream: OutputStream, owner: string, text: string): void;
  line(hostId: string, stream: OutputStream, owner: string, line: string): void;
}

/** Whether it asks for anything that a host for others does not have. */
export function hasSettings(runtimeEnv: RuntimeEnv | undefined): boolean {
  return Object.values(runtimeEnv ?? {}).some((part) => part !== undefined);
}

/** Whether it must be started for whoever asks, and cannot be one that stands ready: what code is brought to other machines makes no difference to a thread. */
export function changesProcess(runtimeEnv: RuntimeEnv | undefined): boolean {
  const { workingDir: _, excludes: __, ...rest } = runtimeEnv ?? {};
  return hasSettings(rest);
}

/** The control of a host that rejects what is pending when the host dies. */
export function controlUntil(
  hostId: string,
  remote: Remote<HostControl>,
  exited: Promise<DeathCause>,
): Host["control"] {
  let lost: HostLostError | undefined;
  // Not Promise.race with `exited`: each call would leave its reaction there for as long as the host lives.
  const pending = new Set<(error: HostLostError) => void>();
  void exited.then((cause) => {
    lost = new HostLostError(hostId, cause);
    for (const reject of pending) reject(lost);
    pending.clear();
  });
  return (use) =>
    new Promise((resolve, reject) => {
      if (lost !== undefined) return reject(lost);
      pending.add(reject);
      use(remote)
        .then(resolve, reject)
        .finally(() => pending.delete(reject));
    });
}

/** A control call found its host dead. */
export class HostLostError extends RaySystemError {
  readonly deathCause: DeathCause;
  constructor(hostId: string, deathCause: DeathCause) {
    super(`host ${hostId} is gone: ${deathCause.message}`);
    this.deathCause = deathCause;
  }
}
