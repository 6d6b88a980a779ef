/** The options of `init`, and what they settle on: each default stands here, and each variable of the environment is read here. */
import { availableParallelism } from "node:os";
import type { InsideSettings } from "../host/control.ts";
import type { Amounts } from "../rpc/demand.ts";
import type { Isolation, RuntimeEnv } from "../rpc/directory.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { standardMemory } from "../shared/machine-memory.ts";
import { isolationKind } from "../shared/options.ts";
import { show } from "../shared/text/show.ts";
import type { NetworkSettings } from "../transport/address.ts";
import {
  type CredentialFiles,
  findCredentials,
  type FoundCredentials,
} from "../transport/tls/credential-files.ts";
import { checkMinNodes } from "./nodes/joined-nodes.ts";

/** Options of `init`. */
export interface InitOptions {
  /** CPUs of this node, as the scheduler counts them. Default: what the machine has. */
  readonly numCpus?: number;
  /** GPUs of this node: the scheduler counts them, nothing more. Default 0. */
  readonly numGpus?: number;
  /** Bytes of memory that may be asked for. Default: 70 % of what the machine has. */
  readonly memory?: number;
  /** Amounts of anything else: `{ license: 2 }`. */
  readonly resources?: Amounts;
  /** What this node is like, for those who choose by it: `{ zone: "a" }`. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Agents of other machines, `rayling://token@host:port`, which become nodes of this session. Default: the environment variable RAYLING_NODES, by commas. */
  readonly nodes?: readonly string[];
  /**
   * So many of `nodes` must be there for the session to start; the others become nodes when they can be reached, and a warning names them. One that refuses us
   * (another token, release or certificate) fails the start in any case. Default: all of them.
   */
  readonly minNodes?: number;
  /** How long the connection to another machine may be cut before what runs there counts as lost. Default 30,000. */
  readonly reconnectTimeoutMs?: number;
  /**
   * Settings of all threads and processes of the session; those of an actor or a task are stronger, part by part, and variables of `env` one by one.
   * `permissions` are for a certain actor or task, because they depend on its module. Default of its `workingDir`: the environment variable RAYLING_WORKING_DIR, "true" or a folder.
   */
  readonly runtimeEnv?: Omit<RuntimeEnv, "permissions">;
  /**
   * What this machine shows to agents at `raylings://` addresses: a folder with `ca.pem`, `cert.pem` and `key.pem`, as `rayling cert` makes it, or the path of each.
   * Default: the environment variable RAYLING_TLS, which names a folder; where an address needs it, `~/.rayling/tls`.
   */
  readonly tls?: CredentialFiles;
  /** Where names of actors live. Default: one of its own for each session, as in Ray. */
  readonly namespace?: string;
  /** Worker threads started ahead of need. Default: one for each of `numCpus`, at most 4 and no more than the machine has CPUs; one if `isolation` is "shared", none if it is "process". */
  readonly prewarm?: number;
  /**
   * Bytes of big values (of 64 KiB and more) that this process keeps in memory: results and puts of all its threads together. Above 80 % of it those
   * unused for longest go to disk, and come back when they are used. A host that is a process of its own has a limit of its own, which is as large.
   * Default: 30 % of the machine's memory.
   */
  readonly objectStoreMemory?: number;
  /** Where values go that do not fit: a directory, in which each session makes one of its own and removes it at its end. Default: the system's for temporary files. */
  readonly spillDirectory?: string;
  /**
   * Watches big values, which all who get them read in place, for changes: a `get` of one that was changed rejects with ObjectMutatedError, and one that
   * was changed and dropped is warned of. Costs a pass over the value each time. Default: whether the environment has RAYLING_DEV=1.
   */
  readonly development?: boolean;
  /** What actors and tasks run in unless they say otherwise. Default: the environment variable RAYLING_ISOLATION, or "thread". */
  readonly isolation?: Isolation;
  /** A `get` or `wait` that waits for longer than this says once, as a warning of the process, what it waits for. Default 10,000; 0: never. */
  readonly stuckWarningMs?: number;
  /**
   * What becomes of a `get`, a `wait` or the next of a stream in an actor or a task that is proved to wait for itself, through calls that wait for each other: "reject" it
   * with DeadlockError, or "warn" of it once, as a warning of the process, and leave it. Default "reject".
   */
  readonly deadlocks?: "reject" | "warn";
  /**
   * What actors and tasks write to stdout and stderr goes to those of this process, line by line, with who wrote it: `(Counter actor-1a2b3c host-9z8y7x) line`. Equal lines
   * of several hosts within 5 seconds are counted: `line [repeated 12x across cluster]`. Default true; false: it is dropped; "raw": as it is written.
   */
  readonly logToDriver?: boolean | "raw";
  /** Note what happens to each call, for `timeline` and for finished tasks in `state`: the last 100,000 events of each thread. Costs time and memory for each call. Default false. */
  readonly taskEvents?: boolean;
  /** Serve the metrics to Prometheus at `http://127.0.0.1:<port>/metrics`; 0: on a free port, which the session info tells. Default: they are not served. */
  readonly metricsPort?: number;
  /** What whoever asks for the metrics must send: `Authorization: Bearer <token>`; 32 characters at least. Default: a new one, which the session info tells. */
  readonly metricsToken?: string;
  /**
   * Open a socket for commands like `rayling status`, which only this user can connect to: a moment after the start, in a directory for temporary files
   * that is the user's alone, or in that of the environment variable RAYLING_CONTROL_DIRECTORY. Default true.
   */
  readonly controlSocket?: boolean;
  /** Do not mind if the runtime is started already; its options stay as they were. */
  readonly ignoreReinitError?: boolean;
}

/** All of them with their defaults. */
export interface DriverSettings {
  readonly isolation: Isolation;
  /** Undefined: one of its own, which is named as the job. */
  readonly namespace: string | undefined;
  readonly numCpus: number;
  readonly resources: Amounts;
  readonly labels: Readonly<Record<string, string>>;
  readonly inside: InsideSettings;
  readonly nodes: readonly string[];
  readonly minNodes: number | undefined;
  readonly network: NetworkSettings;
  /** The files that the network's credentials come from, if it has some. */
  readonly credentials: FoundCredentials | undefined;
  readonly runtimeEnv: InitOptions["runtimeEnv"];
  readonly prewarm: number;
  readonly objectStoreMemory: number | undefined;
  readonly spillDirectory: string | undefined;
  readonly isDevelopment: boolean;
  readonly rejectsDeadlocks: boolean;
  readonly hasControlSocket: boolean;
  /** What runs, and the hook of an actor that ends, have so long to end. */
  readonly graceMs: number;
}

/** Throws InvalidOptionError, CertificateError. */
export function readInitOptions(options: InitOptions): DriverSettings {
  const { nodes = nodesOfEnvironment(), isolation = isolationOfEnvironment() } = options;
  checkMinNodes(options.minNodes, nodes);
  const numCpus = options.numCpus ?? availableParallelism();
  const { network, found } = networkOf(options, nodes);
  return {
    isolation,
    namespace: options.namespace,
    numCpus,
    resources: nodeAmounts({ ...options, numCpus }),
    labels: options.labels ?? {},
    inside: {
      stuckWarningMs: options.stuckWarningMs ?? 10_000,
      logToDriver: options.logToDriver ?? true,
      taskEvents: options.taskEvents ?? false,
    },
    nodes: nodes.map((address) => address.trim()),
    minNodes: options.minNodes,
    network,
    credentials: found,
    runtimeEnv: options.runtimeEnv,
    prewarm: options.prewarm ?? standardPrewarm(isolation, numCpus),
    objectStoreMemory: options.objectStoreMemory,
    spillDirectory: options.spillDirectory,
    isDevelopment: options.development ?? process.env["RAYLING_DEV"] === "1",
    rejectsDeadlocks: options.deadlocks !== "warn",
    // Windows has no sockets that are a user's alone.
    hasControlSocket: options.controlSocket !== false && process.platform !== "win32",
    graceMs: graceOfEnvironment(),
  };
}

/** @throws CertificateError */
function networkOf(
  { reconnectTimeoutMs, tls }: InitOptions,
  nodes: readonly string[],
): { readonly network: NetworkSettings; readonly found: FoundCredentials | undefined } {
  const isNeeded = nodes.some((address) => address.trim().startsWith("raylings:"));
  const found = findCredentials(tls, isNeeded);
  const network = {
    ...(reconnectTimeoutMs === undefined ? {} : { reconnectTimeoutMs }),
    ...(found === undefined ? {} : { credentials: found.credentials }),
  };
  return { network, found };
}

/** As many as soon find work, and can start at once: none where all that is started is a process. */
function standardPrewarm(isolation: Isolation, numCpus: number): number {
  const most: Readonly<Record<Isolation, number>> = { thread: 4, shared: 1, process: 0 };
  return Math.min(numCpus, availableParallelism(), most[isolation]);
}

function nodesOfEnvironment(): string[] {
  return (process.env["RAYLING_NODES"] ?? "").split(",").filter((one) => one.trim() !== "");
}

/** @throws InvalidOptionError */
function isolationOfEnvironment(): Isolation {
  const isolation = process.env["RAYLING_ISOLATION"] ?? "thread";
  const problem = isolationKind(isolation);
  if (problem === undefined) return isolation as Isolation;
  throw new InvalidOptionError(
    "isolation",
    `the environment variable RAYLING_ISOLATION ${problem}, not ${show(isolation)}`,
  );
}

/** Ray's grace for what runs and for the hook of an actor that ends, and Ray's name for it. @throws InvalidOptionError */
function graceOfEnvironment(): number {
  const given = process.env["RAYLING_ACTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS"] ?? "";
  const graceMs = given === "" ? 30_000 : Number(given);
  if (graceMs >= 0 && graceMs < 2 ** 31) return graceMs;
  throw new InvalidOptionError(
    "RAYLING_ACTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS",
    `the environment variable RAYLING_ACTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS must be milliseconds, not ${show(given)}`,
  );
}

/** What a node has, by Ray's names. */
export function nodeAmounts(
  options: Pick<InitOptions, "numCpus" | "numGpus" | "memory" | "resources">,
): Amounts {
  return {
    ...options.resources,
    CPU: options.numCpus ?? 1,
    ...(options.numGpus === undefined ? {} : { GPU: options.numGpus }),
    memory: options.memory ?? standardMemory(),
  };
}
