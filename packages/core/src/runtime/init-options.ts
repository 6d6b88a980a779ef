/**
 * The options of `init` and the settings that result: this file has each default, and reads each
 * environment variable.
 */
import { availableParallelism } from "node:os";
import type { InsideSettings } from "../host/host-control.ts";
import { type Amounts, withoutNothing } from "../rpc/resource-demand.ts";
import type { Isolation, RuntimeEnv } from "../rpc/directory.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { standardMemory } from "../shared/machine/default-memory.ts";
import { isolationKind, withoutUndefined } from "../shared/options.ts";
import { show } from "../shared/text/show.ts";
import type { NetworkSettings } from "../transport/address.ts";
import {
  type CredentialFiles,
  findCredentials,
  type FoundCredentials,
} from "../transport/tls/credential-files.ts";
import type { DashboardOptions } from "./observe/dashboard.ts";

/**
 * Options of `init`, which rejects with InvalidOptionError for an unknown name, a wrong type or a
 * value out of range.
 */
export interface InitOptions {
  /** CPUs of this node, as the scheduler counts them. Default: the CPUs of the machine. */
  readonly numCpus?: number | undefined;
  /** GPUs of this node, which the scheduler only counts. Default 0. */
  readonly numGpus?: number | undefined;
  /** Bytes of memory that actors and tasks may request. Default: 70 % of the machine's memory. */
  readonly memory?: number | undefined;
  /** Amounts of custom resources: `{ license: 2 }`. Default: none. */
  readonly resources?: Amounts | undefined;
  /** Labels of this node, for placement by label: `{ zone: "a" }`. Default: none. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /**
   * A Ray cluster that this session runs on: `ray+http://head:8265`, the address of Ray's
   * dashboard (`ray+https://` behind TLS), or "auto" for a driver on a machine of the cluster. Ray
   * then places all actors and tasks, and this machine offers nothing: `nodes`,
   * `numCpus`, `numGpus`, `memory` and `resources` are refused. Default: the environment variable
   * RAYLING_ON_RAY, or RAY_ADDRESS if it begins with `ray+`.
   */
  readonly address?: string | undefined;
  /**
   * Resources to reserve on the Ray cluster in advance, as one placement group that lasts as long
   * as the session: `[{ CPU: 4 }, { CPU: 4 }]`. Actors and tasks that fit a bundle wait until all
   * are reserved, and run there without a reservation of their own. GPUs are reserved one by one.
   * Default: none.
   */
  readonly bundles?: readonly Amounts[] | undefined;
  /**
   * Agents of other machines, `rayling://token@host:port`, which become nodes of this session.
   * Default: the environment variable RAYLING_NODES, separated by commas.
   */
  readonly nodes?: readonly string[] | undefined;
  /**
   * How long the connection to another machine may be cut, in ms, before its actors and tasks count
   * as lost. On a Ray cluster also how long its dashboard and the session's gateway may give no
   * answer, before `init` rejects or the session is lost. Default 30,000.
   */
  readonly reconnectTimeoutMs?: number | undefined;
  /**
   * Settings of all threads and processes of the session. Settings of an actor or a task override
   * them field by field, and `env` variable by variable. `permissions` belong to an actor or a
   * task, because they depend on its module. Default of its `workingDir`: the environment variable
   * RAYLING_WORKING_DIR, "true" or a folder.
   */
  readonly runtimeEnv?: Omit<RuntimeEnv, "permissions"> | undefined;
  /**
   * The TLS credentials of this machine for agents at `raylings://` addresses: a folder with
   * `ca.pem`, `cert.pem` and `key.pem`, as `rayling cert` makes it, or the path of each. Default:
   * the folder in the environment variable RAYLING_TLS; if an address needs credentials,
   * `~/.rayling/tls`. `init` rejects with CertificateError when they cannot be used.
   */
  readonly tls?: CredentialFiles | undefined;
  /** The namespace of actor names. Default: a new one for each session, as in Ray. */
  readonly namespace?: string | undefined;
  /**
   * The number of worker threads that stand ready for actors and tasks. Default: one for each of
   * `numCpus`, at most 4 and no more than the machine has CPUs; one if `isolation` is "shared",
   * none if it is "process". The default's are replaced when actors are made one after another.
   */
  readonly prewarm?: number | undefined;
  /**
   * Bytes of big values (64 KiB and more) that this process keeps in memory: results and puts of
   * all its threads together. Above 80 % of it the least recently used values go to disk, and
   * return when they are used. A host process has a limit of its own, of equal size. Default: 30 %
   * of the machine's memory.
   */
  readonly objectStoreMemory?: number | undefined;
  /**
   * The directory for values that do not fit in memory; each session makes a subdirectory and
   * removes it at its end. Default: the system's temporary directory.
   */
  readonly spillDirectory?: string | undefined;
  /**
   * Whether to check big values, which their readers share in place, for changes. A `get` of a
   * changed value rejects with ObjectMutatedError, and a changed value that is dropped causes a
   * warning. Each check is a pass over the value. Default: true if the environment has
   * RAYLING_DEV=1.
   */
  readonly development?: boolean | undefined;
  /**
   * The isolation of actors and tasks that do not set their own. Default: the environment variable
   * RAYLING_ISOLATION, or "thread".
   */
  readonly isolation?: Isolation | undefined;
  /**
   * A `get` or `wait` that takes longer than this, in ms, reports once, as a process warning, what
   * it waits for. Default 10,000; 0: never.
   */
  readonly stuckWarningMs?: number | undefined;
  /**
   * The treatment of a `get`, a `wait` or a stream in an actor or a task that provably waits for
   * itself through a cycle of calls: "reject" it with DeadlockError, or "warn" of it once, as a
   * process warning. Default "reject".
   */
  readonly deadlocks?: "reject" | "warn" | undefined;
  /**
   * Whether output of actors and tasks goes to stdout and stderr of this process, line by line,
   * with its writer: `(Counter actor-1a2b3c host-9z8y7x) line`. Equal lines of several hosts within
   * 5 seconds are counted: `line [repeated 12x across cluster]`. Default true; false: it is
   * dropped; "raw": it is shown unchanged.
   */
  readonly logToDriver?: boolean | "raw" | undefined;
  /**
   * Whether to record each call, for `timeline` and for finished tasks in `state`: the last 100,000
   * events of each thread. It costs time and memory for each call. Default false.
   */
  readonly taskEvents?: boolean | undefined;
  /**
   * The port at which metrics are served to Prometheus, `http://127.0.0.1:<port>/metrics`; 0: a
   * free port, which the session info contains. Default: they are not served.
   */
  readonly metricsPort?: number | undefined;
  /**
   * The token that a metrics request must send, `Authorization: Bearer <token>`; at least 32
   * characters. Default: a new one, which the session info contains.
   */
  readonly metricsToken?: string | undefined;
  /**
   * Whether to serve the live page of the session, and where. Its link, which has the token, is
   * written to stderr and in the session info. `init` rejects with RaySystemError when it cannot
   * listen there. Default false.
   */
  readonly dashboard?: boolean | DashboardOptions | undefined;
  /**
   * Whether to open a socket for commands like `rayling status`, to which only this user can
   * connect. It opens shortly after the start, in a private directory for temporary files, or in
   * the directory of the environment variable RAYLING_CONTROL_DIRECTORY. Default true.
   */
  readonly controlSocket?: boolean | undefined;
  /**
   * Whether `init` accepts a runtime that is already started; that keeps its options. Default
   * false.
   */
  readonly ignoreReinitError?: boolean | undefined;
}

/** The settings of a driver, with all defaults applied. */
export interface DriverSettings {
  readonly isolation: Isolation;
  /** Undefined stands for a new one with the name of the job. */
  readonly namespace: string | undefined;
  readonly numCpus: number;
  readonly resources: Amounts;
  readonly labels: Readonly<Record<string, string>>;
  readonly inside: InsideSettings;
  readonly nodes: readonly string[];
  /** The cluster that the session runs on; undefined: machines of its own. */
  readonly address: string | undefined;
  /** The bundles that it reserves there in advance. */
  readonly bundles: readonly Amounts[];
  readonly network: NetworkSettings;
  /** The files of the network's credentials, if it has some. */
  readonly credentials: FoundCredentials | undefined;
  readonly runtimeEnv: InitOptions["runtimeEnv"];
  readonly prewarm: number;
  readonly keepsPrewarm: boolean;
  readonly objectStoreMemory: number | undefined;
  readonly spillDirectory: string | undefined;
  readonly isDevelopment: boolean;
  readonly rejectsDeadlocks: boolean;
  readonly hasControlSocket: boolean;
  /** The most time that running calls, and the hook of an ending actor, have to end. */
  readonly graceMs: number;
}

/** Applies the defaults. Throws InvalidOptionError, CertificateError. */
export function readInitOptions(options: InitOptions): DriverSettings {
  const { address = addressOfEnvironment(), isolation = isolationOfEnvironment() } = options;
  checkForEngine(options, address);
  const { nodes = address === undefined ? nodesOfEnvironment() : [] } = options;
  const numCpus = options.numCpus ?? availableParallelism();
  const { network, found } = networkOf(options, nodes);
  return {
    isolation,
    namespace: options.namespace,
    numCpus,
    resources: address === undefined ? nodeAmounts({ ...options, numCpus }) : {},
    labels: options.labels ?? {},
    inside: {
      stuckWarningMs: options.stuckWarningMs ?? 10_000,
      logToDriver: options.logToDriver ?? true,
      taskEvents: options.taskEvents ?? false,
    },
    nodes: nodes.map((one) => one.trim()),
    address,
    bundles: (options.bundles ?? []).map(withoutNothing),
    network,
    credentials: found,
    // The machines of a cluster do not have the driver's files.
    runtimeEnv:
      address === undefined
        ? options.runtimeEnv
        : { workingDir: true, ...withoutUndefined(options.runtimeEnv ?? {}) },
    prewarm: address === undefined ? (options.prewarm ?? standardPrewarm(isolation, numCpus)) : 0,
    keepsPrewarm: options.prewarm !== undefined,
    objectStoreMemory: options.objectStoreMemory,
    spillDirectory: options.spillDirectory,
    isDevelopment: options.development ?? process.env["RAYLING_DEV"] === "1",
    rejectsDeadlocks: options.deadlocks !== "warn",
    // Windows has no sockets that are private to a user.
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

/**
 * Refuses options of a machine of one's own with a cluster, and those of a cluster without one.
 *
 * @throws InvalidOptionError
 */
function checkForEngine(options: InitOptions, address: string | undefined): void {
  if (address === undefined) {
    if (options.bundles === undefined) return;
    throw new InvalidOptionError(
      "bundles",
      "init: option bundles needs a Ray cluster to reserve them on, see option address",
    );
  }
  const own = ["nodes", "numCpus", "numGpus", "memory", "resources"] as const;
  const given = own.find((name) => options[name] !== undefined);
  if (given === undefined) return;
  throw new InvalidOptionError(
    given,
    `init: option ${given} does not go with the cluster at ${address}, which has its own machines`,
  );
}

/** Returns the cluster that the command line or Ray's own variable names. */
function addressOfEnvironment(): string | undefined {
  const own = process.env["RAYLING_ON_RAY"] ?? "";
  if (own !== "") return /^https?:/.test(own) ? `ray+${own}` : own;
  const ofRay = process.env["RAY_ADDRESS"] ?? "";
  return ofRay.startsWith("ray+") ? ofRay : undefined;
}

/** This many soon find work and can start at once: none where only processes start. */
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

/**
 * Returns Ray's grace period for running calls and for the hook of an ending actor, by Ray's name.
 *
 * @throws InvalidOptionError
 */
function graceOfEnvironment(): number {
  const given = process.env["RAYLING_ACTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS"] ?? "";
  const graceMs = given === "" ? 30_000 : Number(given);
  if (graceMs >= 0 && graceMs < 2 ** 31) return graceMs;
  throw new InvalidOptionError(
    "RAYLING_ACTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS",
    `the environment variable RAYLING_ACTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS must be milliseconds, not ${show(given)}`,
  );
}

/** Returns the resources of a node, by Ray's names. */
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
