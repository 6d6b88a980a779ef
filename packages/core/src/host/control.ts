/**
 * The two control contracts between a driver and a host, spoken through comlink: low-rate, typed, never used for calls.
 *
 * Everything that crosses is plain data: values are detached from the packer's memory, causes carry no live errors.
 */
import type { MessagePort } from "node:worker_threads";
import type { Encoded } from "../protocol/codec.ts";
import type { CauseData } from "../protocol/cause.ts";
import type { FailureData } from "../protocol/failure.ts";
import type { BudgetShare } from "../store/budget.ts";
import type { ObjectStats } from "../store/object-memory.ts";
import type {
  ClusterResources,
  GroupInfo,
  GroupRegistration,
  GroupSpec,
  GroupState,
  NodeInfo,
  NodeSpec,
} from "../rpc/cluster.ts";
import type { Assignment, Demand } from "../rpc/demand.ts";
import type {
  ActorInfo,
  ActorLocation,
  ActorSpec,
  ActorStatus,
  Registration,
  RemoteKey,
  StartArguments,
  WorkerLease,
  WorkerRequest,
} from "../rpc/directory.ts";
import type { WaitNode } from "../rpc/wait-graph.ts";
import type { HostReport, RuntimeView, StateAnswer, StateQuery, TraceEvent } from "../rpc/state.ts";
import type { CodeRoot } from "../shared/code-roots.ts";
import type { Credentials } from "../transport/tls/credentials.ts";
import type { Address, NetworkSettings } from "../transport/address.ts";

/** What every host is told about itself. */
export interface HostIdentity {
  readonly hostId: string;
  /** The node that it belongs to. */
  readonly nodeId: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly driverId: string;
  /** Everything between an init and its shutdown is one job. */
  readonly jobId: string;
  readonly namespace: string;
  readonly inside: InsideSettings;
  readonly network: NetworkSettings;
  readonly program: Program;
}

/** The driver's program, as its modules see it: they see the same in a host (host/program.ts). */
export interface Program {
  readonly argv: readonly string[];
  readonly title: string;
  /** Its files hold tests of Node's runner, which are its own. */
  readonly isTest: boolean;
}

/** What a host thread is started with. */
export interface ThreadSettings extends HostIdentity {
  readonly data: MessagePort;
  /** The driver calls the host here. */
  readonly control: MessagePort;
  /** The host calls the driver here. */
  readonly directory: MessagePort;
  readonly objectStore: ObjectStoreShare;
}

/** How much a host tells of what happens in it. */
export interface InsideSettings {
  /** A `get` or `wait` that waits for longer says why; 0: never. */
  readonly stuckWarningMs: number;
  /** What it writes is shown by the driver, with who wrote it; false: nowhere; "raw": as it is. */
  readonly logToDriver: boolean | "raw";
  /** Notes what happens to each call. */
  readonly taskEvents: boolean;
}

/** A host's part in the object store of its process. */
export interface ObjectStoreShare {
  readonly budget: BudgetShare;
  readonly spillDirectory: string;
  /** Values are watched for changes. */
  readonly isDevelopment: boolean;
}

/** With both ends. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** What a host process is started with (host/settings.ts). */
export interface ProcessSettings extends HostIdentity {
  /** Where it can be dialled. On a path, its channels to the driver are files that it inherits; on a port, the driver dials them. */
  readonly door: Address;
  /** What others dial in place of the host that the door listens on. */
  readonly publicHost?: string;
  /** It takes the first of these that is free. */
  readonly ports?: PortRange;
  /** Where the driver's code is, if it was brought here. */
  readonly codeRoots?: readonly CodeRoot[];
  /** Bytes of big values that it keeps in memory: a process has a budget of its own. */
  readonly objectStoreMemory: number;
  readonly spillDirectory: string;
  /** Values are watched for changes. */
  readonly isDevelopment: boolean;
}

/** Files of a host process: its session with the driver, and the control of both; of one that is dialled, a line to the agent that started it. Its settings come first. */
export const inherited = { data: 3, control: 4 } as const;

/** The ways by which a driver dials its own channels to a host of another machine. */
export const dialled = { data: "data", control: "control" } as const;

/** How one of two hosts comes to a channel to the other. */
export type Way =
  /** Between threads. */
  | { readonly kind: "port"; readonly port: MessagePort }
  | { readonly kind: "dial"; readonly address: Address }
  /** The other one dials, and names the request. */
  | { readonly kind: "incoming" };

export interface CreateRequest {
  /** What calls to this life of the actor are addressed to. */
  readonly target: string;
  readonly key: RemoteKey;
  readonly info: ActorInfo;
  readonly name: string | undefined;
  readonly namespace: string;
  /** How often the actor was restarted before. */
  readonly incarnation: number;
  /** Others live in the same host. */
  readonly isShared: boolean;
  readonly args: StartArguments;
  readonly assignment: Assignment;
}

/** A failed creation tells which part failed: the module, or the constructor. */
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
  /** Calls and tasks that it made and that have no answer yet. */
  readonly outstandingCalls: number;
}

/** Driver to host. */
export interface HostControl {
  /** Makes actors of one module, which is loaded first. */
  create(requests: readonly CreateRequest[]): Promise<readonly CreateResult[]>;
  /** Resolves when the driver knows of every actor that was created here before: handles may be quicker than that. */
  registered(): Promise<void>;
  /** A signal among the arguments of the constructor of an actor is aborted. */
  abortSignal(target: string, index: number, reason: Encoded): void;
  /** Ends an actor when what runs in it has ended; `exited` follows. If it is "drained", its next life gets what it has not begun. */
  terminate(target: string, cause: CauseData): void;
  /** Ends actors at once and leaves the others; what they were called for is answered "gone". */
  discard(targets: readonly string[]): void;
  /** Another host wants a channel to this one, by this way. Resolves when it is open. */
  accept(peerId: string, way: Way, wayId: string): Promise<void>;
  /** Where other hosts may dial this one; it listens from then on. */
  address(): Promise<Address>;
  stats(): HostStats;
  view(): RuntimeView;
  /** Those of these ids, and what is known here that they need. */
  waitNodes(ids: readonly string[]): Promise<readonly WaitNode[]>;
  /** That wait waits for itself: it rejects, or it is only told of. */
  foundCycle(waitNodeId: string, steps: readonly string[], rejects: boolean): void;
  /** What was noted since it was asked last. */
  report(): HostReport;
  /** What this host shows where TLS is spoken, and whom it believes, from now on. */
  renew(credentials: Credentials): void;
  /** Sends what is ready; the driver ends the host when this has answered. */
  stop(): Promise<void>;
}

/** Host to driver: the Directory in plain data. */
export interface DriverControl {
  register(spec: ActorSpec): Registration;
  start(actorId: string, args: StartArguments): void;
  abortSignal(actorId: string, index: number, reason: Encoded): void;
  actorEnded(actorId: string): Promise<void>;
  abandon(actorId: string, cause: CauseData): void;
  find(name: string, namespace: string | undefined): Promise<ActorInfo | undefined>;
  list(allNamespaces: boolean): Promise<{ readonly name: string; readonly namespace: string }[]>;
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
  kill(info: ActorInfo, noRestart: boolean): Promise<void>;
  outOfScope(actorId: string): void;
  /** An actor of this host ends for good when what runs has ended; nothing starts in it any more. */
  exiting(actorId: string, incarnation: number, cause: CauseData): void;
  /** An actor of this host has ended by itself. */
  exited(actorId: string, incarnation: number, cause: CauseData): void;
  endWorker(hostId: string): Promise<void>;
  /** @param wayId names the request, for a way that the other host opens */
  connect(fromHostId: string, toHostId: string, wayId: string): Promise<Way>;
  /** Resolves when that host is known to be gone. */
  death(hostId: string): Promise<CauseData>;
  state(query: StateQuery): Promise<StateAnswer>;
  timeline(): Promise<readonly TraceEvent[]>;
  metricsText(): Promise<string>;
  /** What the host has noted. */
  reported(report: HostReport): void;
  /** Tasks of that host that may wait for themselves, by their ids as nodes. */
  suspect(taskNodeIds: readonly string[]): void;
  actorStatus(actorId: string): Promise<ActorStatus | undefined>;
  whyWaiting(demand: Demand): Promise<string | undefined>;
  leaseWorker(request: WorkerRequest, ticket: number): Promise<WorkerLease>;
  withdrawWorker(ticket: number): void;
  releaseWorker(hostId: string): void;
  setBlocked(hostId: string, blocked: boolean): void;
  nodes(): readonly NodeInfo[];
  resources(): ClusterResources;
  addNode(spec: NodeSpec): NodeInfo;
  removeNode(nodeId: string): Promise<boolean>;
  drainNode(nodeId: string, timeoutMs: number): Promise<boolean | undefined>;
  createGroup(spec: GroupSpec): GroupRegistration;
  groupReady(groupId: string): Promise<GroupState>;
  removeGroup(groupId: string): Promise<void>;
  groups(): readonly GroupInfo[];
}

/** What a host says to its launcher besides. */
export interface LauncherControl extends DriverControl {
  /** It has started: from now on, what ends it is not its settings. */
  ready(): void;
  /** A process is about to end, because of this; of a thread, its launcher hears by itself. */
  dying(cause: CauseData): void;
}

/** A copy that structured clone can carry: only its own bytes, no live refs. */
export function detach(encoded: Encoded): Encoded {
  const { bytes, start, end } = encoded;
  const detached = { ...encoded, references: undefined };
  if (bytes.buffer instanceof SharedArrayBuffer) return detached;
  return { ...detached, bytes: bytes.slice(start, end), start: 0, end: end - start };
}

export function detachArguments(args: StartArguments): StartArguments {
  return { values: detach(args.values), dependencies: args.dependencies.map(detach) };
}
