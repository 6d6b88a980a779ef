/**
 * The two control contracts between a driver and a host, spoken through comlink: low-rate, typed,
 * never used for calls.
 *
 * All data is plain: values are detached from the packer's memory, and causes carry no live errors.
 */
import type { MessagePort } from "node:worker_threads";
import type { Encoded } from "../protocol/codec.ts";
import type { CauseData } from "../protocol/death-cause-data.ts";
import { giveOut } from "../protocol/memory-pool.ts";
import type { FailureData } from "../protocol/failure.ts";
import type { BudgetShare } from "../store/memory-budget.ts";
import type { ObjectStats } from "../store/object-memory.ts";
import type { Assignment } from "../rpc/resource-demand.ts";
import type {
  ActorInfo,
  ActorLocation,
  ActorSpec,
  Directory,
  Registration,
  StartArguments,
} from "../rpc/directory.ts";
import type { RuntimeLook } from "../rpc/stacks.ts";
import type { RemoteKey } from "../rpc/remote-key.ts";
import type { WaitNode } from "../rpc/wait-graph.ts";
import type { HostReport, RuntimeView } from "../rpc/state.ts";
import type { CodeRoot } from "../shared/code-roots.ts";
import type { HasHandedCode } from "../shared/compiled/handed-code.ts";
import type { Credentials } from "../transport/tls/credentials.ts";
import type { Address, NetworkSettings } from "../transport/address.ts";

/** Facts that every host gets about itself. */
export interface HostIdentity {
  readonly hostId: string;
  /** The node that it belongs to. */
  readonly nodeId: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly driverId: string;
  /** All work between an init and its shutdown is one job. */
  readonly jobId: string;
  readonly namespace: string;
  /** Whether the session runs on the cluster of an engine. */
  readonly hasEngine: boolean;
  readonly inside: InsideSettings;
  readonly network: NetworkSettings;
  readonly program: Program;
}

/** The driver's program, as modules see it there and in a host (host/code/program.ts). */
export interface Program {
  readonly argv: readonly string[];
  readonly title: string;
  /** Whether its files contain tests of Node's runner, which only the driver runs. */
  readonly isTest: boolean;
  /** Whether it had loaded `node:fs/promises` before this package. */
  readonly usesFilePromises: boolean;
}

/** The settings of a host thread. */
export interface ThreadSettings extends HostIdentity, HasHandedCode {
  readonly data: MessagePort;
  /** The driver calls the host here. */
  readonly control: MessagePort;
  /** The host calls the driver here. */
  readonly directory: MessagePort;
  readonly objectStore: ObjectStoreShare;
}

/** How much a host reports about itself. */
export interface InsideSettings {
  /** A `get` or `wait` that takes longer than this, in ms, logs its reason; 0: never. */
  readonly stuckWarningMs: number;
  /**
   * The driver shows its output with the name of the writer; false: not at all; "raw": unchanged.
   */
  readonly logToDriver: boolean | "raw";
  /** Whether each call is recorded. */
  readonly taskEvents: boolean;
}

/** A host's part in the object store of its process. */
export interface ObjectStoreShare {
  readonly budget: BudgetShare;
  readonly spillDirectory: string;
  /** Whether values are watched for changes. */
  readonly isDevelopment: boolean;
}

/** A range of ports, both ends included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** The settings of a host process (host/settings.ts). */
export interface ProcessSettings extends HostIdentity {
  /**
   * Its listening address. On a path, its channels to the driver are inherited files; on a port,
   * the driver dials them.
   */
  readonly listenAt: Address;
  /** The host name that others dial, if it differs from the listening one. */
  readonly publicHost?: string;
  /** The host takes the first free port of these. */
  readonly ports?: PortRange;
  /** The places of the driver's code, if it was copied to this machine. */
  readonly codeRoots?: readonly CodeRoot[];
  /** The bytes of big values that it keeps in memory: a process has a budget of its own. */
  readonly objectStoreMemory: number;
  readonly spillDirectory: string;
  /** Whether values are watched for changes. */
  readonly isDevelopment: boolean;
}

/**
 * Files of a host process: its session with the driver, and their control channel. For a dialled
 * host the control file leads to the agent that started it. The settings come first on it.
 */
export const inherited = { data: 3, control: 4 } as const;

/** The names of the channels that a driver dials to a host of another machine. */
export const dialled = { data: "data", control: "control" } as const;

/** The means by which two hosts open a channel to each other. */
export type Way =
  /** A port between threads. */
  | { readonly kind: "port"; readonly port: MessagePort }
  | { readonly kind: "dial"; readonly address: Address }
  /** The other host dials, and names the request. */
  | { readonly kind: "incoming" };

export interface CreateRequest {
  /** The address of calls to this incarnation of the actor. */
  readonly target: string;
  readonly key: RemoteKey;
  readonly info: ActorInfo;
  readonly name: string | undefined;
  readonly namespace: string;
  /** The number of earlier restarts of the actor. */
  readonly incarnation: number;
  /** Whether other actors live in the same host. */
  readonly isShared: boolean;
  readonly args: StartArguments;
  readonly assignment: Assignment;
}

/**
 * The result of a creation. A failure names the part that failed: the module, or the constructor.
 */
export type CreateResult = { readonly ok: true } | FailedCreation;

export interface FailedCreation {
  readonly ok: false;
  readonly kind: "load-failed" | "not-registered" | "init-failed";
  readonly failure: FailureData;
}

export interface HostStats {
  readonly hostId: string;
  readonly actors: readonly {
    readonly actorId: string;
    readonly className: string;
    readonly running: number;
    readonly queued: number;
    readonly executed: number;
  }[];
  readonly exportedObjects: number;
  readonly objects: ObjectStats;
  /** Calls and tasks of this host that have no answer yet. */
  readonly outstandingCalls: number;
}

/** The calls of a driver to a host. */
export interface HostControl {
  /** Makes actors of one module, which is loaded first. */
  create(requests: readonly CreateRequest[]): Promise<readonly CreateResult[]>;
  /**
   * Resolves when the driver knows every actor that was created here before; handles may travel
   * faster than that.
   */
  registered(): Promise<void>;
  /** Aborts a signal among the arguments of an actor's constructor. */
  abortSignal(target: string, index: number, reason: Encoded): void;
  /**
   * Ends an actor when its running calls have ended; `exited` follows. If the cause is "drained",
   * its next incarnation gets the calls that it has not begun.
   */
  terminate(target: string, cause: CauseData): void;
  /** Ends actors at once and leaves the others; their calls are answered "gone". */
  discard(targets: readonly string[]): void;
  /** Opens a channel for another host that asks for it. Resolves when it is open. */
  accept(peerId: string, way: Way, wayId: string): Promise<void>;
  /** Returns the address at which other hosts may dial this one; it listens from then on. */
  address(): Promise<Address>;
  stats(): HostStats;
  view(): RuntimeView;
  /** Returns what it does, asked between two turns: nothing is on its stack. */
  look(): RuntimeLook;
  /** Returns the nodes with these ids, and the local nodes that they depend on. */
  waitNodes(ids: readonly string[]): Promise<readonly WaitNode[]>;
  /** Reports that a wait is part of a cycle: it rejects, or only warns. */
  foundCycle(waitNodeId: string, steps: readonly string[], rejects: boolean): void;
  /** Returns the records since the last report. */
  report(): HostReport;
  /**
   * Resolves when nothing more can come of that host, which has died: whether this worker has
   * nothing to do for it.
   */
  forsaken(holder: string): Promise<boolean>;
  /** Replaces the TLS credentials of this host. */
  renew(credentials: Credentials): void;
  /** Sends ready messages; the driver ends the host when this has answered. */
  stop(): Promise<void>;
}

/** Questions of the Directory that a host passes to the driver, and answers, as they are. */
export const asked = [
  "actorEnded",
  "find",
  "list",
  "kill",
  "endWorker",
  "state",
  "timeline",
  "metricsText",
  "actorStatus",
  "whyWaiting",
  "leaseWorker",
  "nodes",
  "resources",
  "addNode",
  "removeNode",
  "drainNode",
  "createGroup",
  "groupReady",
  "removeGroup",
  "groups",
  "foreign",
] as const;

/** Messages of the Directory that a host passes to the driver as they are. */
export const reports = ["outOfScope", "withdrawWorker", "releaseWorker", "setBlocked"] as const;

type Asked = (typeof asked)[number];
type Reports = (typeof reports)[number];

/**
 * Methods of `target` as functions of their own, by their names.
 *
 * @param then is given what they return
 */
export function methodsOf<Target extends object, Name extends keyof Target>(
  target: Target,
  names: readonly Name[],
  then: (returned: unknown) => unknown = (returned) => returned,
): Pick<Target, Name> {
  const methods = names.map((name) => [
    name,
    (...args: unknown[]) => then((target[name] as (...args: unknown[]) => unknown)(...args)),
  ]);
  return Object.fromEntries(methods) as Pick<Target, Name>;
}

/** The calls of a host to its driver: the Directory in plain data. */
export interface DriverControl extends Pick<Directory, Asked | Reports> {
  register(spec: ActorSpec): Registration;
  start(actorId: string, args: StartArguments): void;
  abortSignal(actorId: string, index: number, reason: Encoded): void;
  abandon(actorId: string, cause: CauseData): void;
  locate(
    info: ActorInfo,
  ): Promise<
    | Extract<ActorLocation, { state: "alive" }>
    | { readonly state: "dead"; readonly cause: CauseData }
  >;
  loss(
    actorId: string,
    incarnation: number,
  ): Promise<{ readonly restarting: boolean; readonly cause: CauseData }>;
  /** Resolves when that host is known to be gone. */
  death(hostId: string): Promise<CauseData>;
  /**
   * An actor of this host ends for good when its running calls have ended; no further call starts
   * in it.
   */
  exiting(actorId: string, incarnation: number, cause: CauseData): void;
  /** An actor of this host has ended by itself. */
  exited(actorId: string, incarnation: number, cause: CauseData): void;
  /** @param wayId names the request, for a channel that the other host opens */
  connect(fromHostId: string, toHostId: string, wayId: string): Promise<Way>;
  /** Takes the records of a host. */
  reported(report: HostReport): void;
  /** Reports tasks of that host that may be part of a cycle, by their node ids. */
  suspect(taskNodeIds: readonly string[]): void;
}

/** Further calls of a host to its launcher. */
export interface LauncherControl extends DriverControl {
  /** The host has started: from now on, an early end is not caused by its settings. */
  ready(): void;
  /** A process is about to end for that reason; the launcher of a thread sees its end itself. */
  dying(cause: CauseData): void;
}

/**
 * Returns a copy for structured clone: only its own bytes, and no live refs. Its memory is given
 * out, as the other side may be a thread.
 */
export function detach(encoded: Encoded): Encoded {
  const { bytes, start, end, buffers } = encoded;
  for (const memory of buffers) giveOut(memory);
  const detached = { ...encoded, references: undefined };
  if (bytes.buffer instanceof SharedArrayBuffer) return detached;
  return { ...detached, bytes: bytes.slice(start, end), start: 0, end: end - start };
}

export function detachArguments(args: StartArguments): StartArguments {
  return { values: detach(args.values), dependencies: args.dependencies.map(detach) };
}
