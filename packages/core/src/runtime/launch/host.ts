/**
 * The contract of launchers, the first seam: a request for a host becomes a running host with its
 * channel and its control.
 *
 * The death of a host always has a cause, and pending control calls reject with it.
 */
import type { Labels } from "../../placement/labels.ts";
import type { Remote } from "comlink";
import type {
  DriverControl,
  HostControl,
  HostIdentity,
  InsideSettings,
  ObjectStoreShare,
} from "../../host/host-control.ts";
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
  /** The settings of the code that starts its actor or task, below its own. */
  readonly inherited?: RuntimeEnv | undefined;
  /** The variables of what it may use of its node, which nobody inherits. */
  readonly variables?: Readonly<Record<string, string>> | undefined;
  /** The module that it is started for, if that is known. */
  readonly moduleUrl?: string;
}

export interface Host {
  readonly id: string;
  readonly nodeId: string;
  readonly isolation: "thread" | "process";
  /** Whether it is on another machine than the driver: other hosts dial it. */
  readonly isRemote?: boolean;
  /** The id of its process. */
  readonly pid: number | undefined;
  readonly channel: Channel;
  /** Calls the host's control; rejects with the cause if the host dies first. */
  readonly control: <T>(use: (control: Remote<HostControl>) => Promise<T>) => Promise<T>;
  /** Resolves when it runs and accepts work; it may never settle if the host ends first. */
  readonly ready: Promise<void>;
  readonly exited: Promise<DeathCause>;
  /**
   * Resolves when its requirements are on its machine, or with the cause of its end if they cannot
   * be. Absent when it has none.
   */
  readonly prepared?: Promise<DeathCause | undefined> | undefined;
  /** Lets it send ready messages, then ends it. */
  stop(cause: DeathCause): Promise<void>;
  /** Ends it now; the first cause counts. */
  terminate(cause: DeathCause): Promise<void>;
}

export interface LauncherOptions {
  readonly driverId: string;
  readonly jobId: string;
  readonly namespace: string;
  /** Whether the session runs on the cluster of an engine. */
  readonly hasEngine: boolean;
  /** The driver's own node, on which threads stand ready. */
  readonly nodeId: string;
  readonly labelsOf: (nodeId: string) => Labels;
  /** The number of threads that stand ready. */
  readonly prewarm: number;
  /** Whether as many stand ready all the time. */
  readonly keepsPrewarm: boolean;
  readonly inside: InsideSettings;
  /** Settings of all hosts; a host's own settings override them. */
  readonly runtimeEnv: RuntimeEnv | undefined;
  readonly network: NetworkSettings;
  /** The bytes that each host keeps in memory, if the user set them. */
  readonly objectStoreMemory: number | undefined;
  /** Returns a host's part in the object store. */
  readonly objectStoreFor: (hostId: string) => ObjectStoreShare;
  /** Returns the driver's control contract for one host. */
  readonly controlFor: (hostId: string) => DriverControl;
  /** Called once for each host, before its first use. */
  readonly onLaunch: (host: Host) => void;
  /** Called before its first use where the children of its code inherit settings. */
  readonly onTaken: (host: Host, handedDown: RuntimeEnv) => void;
  /** Takes the output of hosts. */
  readonly output: HostOutput;
}

/** Returns the facts that a host gets about itself. */
export function identityOf(hostId: string, nodeId: string, options: LauncherOptions): HostIdentity {
  const { driverId, jobId, namespace, hasEngine, inside, network } = options;
  const nodeLabels = options.labelsOf(nodeId);
  const about = { driverId, jobId, namespace, hasEngine, inside, network, program: ownProgram() };
  return { hostId, nodeId, nodeLabels, ...about };
}

/**
 * Takes the output of hosts: a thread's text as it comes, and a process's text line by line;
 * `owner` is the actor or task, or "".
 */
export interface HostOutput {
  text(hostId: string, stream: OutputStream, owner: string, text: string): void;
  line(hostId: string, stream: OutputStream, owner: string, line: string): void;
}

/** Returns the settings with the variables of what a host may use. */
export function withEnv(
  runtimeEnv: RuntimeEnv | undefined,
  env: Readonly<Record<string, string>> | undefined,
): RuntimeEnv | undefined {
  return env === undefined ? runtimeEnv : { ...runtimeEnv, env: { ...runtimeEnv?.env, ...env } };
}

/** Whether a request has any settings of its own. */
export function hasSettings(runtimeEnv: RuntimeEnv | undefined): boolean {
  return Object.values(runtimeEnv ?? {}).some((part) => part !== undefined);
}

/**
 * Whether a host must be started for the request, so that a ready one does not do. Code for other
 * machines makes no difference to a thread.
 */
export function changesProcess(runtimeEnv: RuntimeEnv | undefined): boolean {
  const { workingDir: _, excludes: __, ...rest } = runtimeEnv ?? {};
  return hasSettings(rest);
}

/** Returns a host's control, whose pending calls reject when the host dies. */
export function controlUntil(
  hostId: string,
  remote: Remote<HostControl>,
  exited: Promise<DeathCause>,
): Host["control"] {
  let lost: HostLostError | undefined;
  // Promise.race with `exited` would leave a reaction there on each call, for the life of the host.
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
