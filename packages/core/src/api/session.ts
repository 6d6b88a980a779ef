/**
 * Starts and ends the runtime of this thread, and is the gate that every other call passes.
 *
 * A call before `init` starts the runtime with defaults, as in Ray (RAYLING_AUTO_INIT=0 turns that
 * off). Driver code that a host reaches by importing its module does not pass: a function that
 * returns a promise never settles there, and any other throws DriverCodeStopped.
 */
import type { Caller } from "../caller/caller.ts";
import {
  currentCaller,
  currentLoading,
  currentNamespace,
  DriverCodeStopped,
  setCurrentCaller,
} from "../caller/current.ts";
import { noteUsedModules } from "../host/code/program.ts";
import { closeCounts } from "../host/code/registry.ts";
import type { Directory, RuntimeEnv } from "../rpc/directory.ts";
import { Driver } from "../runtime/driver.ts";
import { type InitOptions, readInitOptions } from "../runtime/init-options.ts";
import { hasSettings } from "../runtime/launch/host.ts";
import { keepCompiledAfter } from "../shared/compiled/keep-compiled.ts";
import { InvalidOptionError, RaySystemError, SessionEndedError } from "../shared/errors.ts";
import { refusePlace } from "../shared/machine/refuse-place.ts";
import { threadSlot } from "../shared/thread-slot.ts";
import { newToken } from "../transport/connect/handshake.ts";
import {
  atMost,
  type Check,
  type Checks,
  checkOptions,
  count,
  credentialFiles,
  flag,
  isolationKind,
  isRecord,
  portNumber,
  secret,
  text,
  timerMs,
  withoutUndefined,
  writableDirectory,
} from "../shared/options.ts";
import { environment } from "../shared/runtime-env.ts";
import { amount, bytes, gpus, reservedBundles, resources } from "./scheduling/amounts.ts";
import { labels } from "./scheduling/labels.ts";
import { withWholePath } from "./working-dir.ts";

interface DriverSlot {
  driver: Driver | undefined;
  /** The end of earlier sessions. */
  closing: Promise<unknown>;
  hasEnded: boolean;
}

const slot: DriverSlot = threadSlot("driver", () => ({
  driver: undefined,
  closing: Promise.resolve(),
  hasEnded: false,
}));

/** When a session has run most of what a short one runs. */
const aWhileMs = 2000;

/** The most threads that stand ready. */
const mostPrewarmed = 1024;

/** The facts about a session. */
export interface SessionInfo {
  /** The namespace of actor names. */
  readonly namespace: string;
  /** The port of the metrics, if they are served. */
  readonly metricsPort?: number;
  /** The token that a metrics request must send: `Authorization: Bearer <token>`. */
  readonly metricsToken?: string;
  /** The link to the live page, with its token, if it is served. */
  readonly dashboardUrl?: string;
  /** Shuts the session down: `await using session = await ray.init()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts the runtime: worker threads of this process.
 *
 * Rejects with RaySystemError when it is already started and `ignoreReinitError` is not set; with
 * InvalidOptionError for a bad option; with CertificateError for unusable credentials; and with
 * NodeAddressError (of @rayling/cluster) when a machine of `nodes` cannot be joined.
 */
export async function init(some: InitOptions = {}): Promise<SessionInfo> {
  if (isDriverCode()) return never();
  const options = checkOptions("init", some, initChecks);
  checkMetrics(options);
  if (currentCaller() !== undefined) {
    if (options.ignoreReinitError === true) return sessionInfo({ namespace: currentNamespace() });
    throw new RaySystemError(
      "init was called twice; call shutdown first, or pass ignoreReinitError: true",
    );
  }
  const runtimeEnv = withWholePath("init", {
    ...workingDirOfEnvironment(),
    ...withoutUndefined(options.runtimeEnv ?? {}),
  });
  const driver = start(hasSettings(runtimeEnv) ? { ...options, runtimeEnv } : options);
  const { namespace } = driver;
  try {
    await driver.caller.waiting.during(driver.join());
    const metrics = await servedMetrics(driver, options);
    const { dashboard = false } = options;
    if (dashboard === false) return sessionInfo({ namespace, ...metrics });
    const dashboardUrl = await driver.endpoints.serveDashboard(dashboard === true ? {} : dashboard);
    return sessionInfo({ namespace, ...metrics, dashboardUrl });
  } catch (error) {
    await shutdown();
    throw error;
  }
}

async function servedMetrics(
  driver: Driver,
  { metricsPort, metricsToken }: InitOptions,
): Promise<Pick<SessionInfo, "metricsPort" | "metricsToken">> {
  if (metricsPort === undefined) return {};
  const token = metricsToken ?? newToken();
  return {
    metricsPort: await driver.endpoints.serveMetrics(metricsPort, token),
    metricsToken: token,
  };
}

/** @throws InvalidOptionError */
function checkMetrics({ metricsToken, metricsPort }: InitOptions): void {
  if (metricsToken === undefined || metricsPort !== undefined) return;
  throw new InvalidOptionError(
    "metricsToken",
    "init: metricsToken needs metricsPort, because the metrics are served only with it",
  );
}

/** Comparison and printing leave the shutdown out. */
function sessionInfo(known: Omit<SessionInfo, typeof Symbol.asyncDispose>): SessionInfo {
  return Object.defineProperty(known, Symbol.asyncDispose, {
    value: shutdown,
  }) as SessionInfo;
}

const dashboardPlace: Check = (value) => {
  if (typeof value === "boolean") return undefined;
  if (!isRecord(value)) return "must be true, false or { port, host }";
  const { port, host, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `has no part "${unknown}"; it has port, host`;
  const problem = port === undefined ? undefined : portNumber(port);
  if (problem !== undefined) return `has a port that ${problem}`;
  return host === undefined || (typeof host === "string" && host !== "")
    ? undefined
    : "has a host that must be an address";
};

function workingDirOfEnvironment(): Pick<RuntimeEnv, "workingDir"> {
  const given = process.env["RAYLING_WORKING_DIR"] ?? "";
  return given === "" ? {} : { workingDir: given === "true" ? true : given };
}

const ofSession: Check = (value) =>
  environment(value) ??
  (isRecord(value) && value["permissions"] !== undefined
    ? "cannot hold permissions, which depend on the module that is started: give them to actors and tasks"
    : undefined);

const addresses: Check = secret((value) => {
  const isList = Array.isArray(value) && value.every((one) => typeof one === "string");
  return isList ? undefined : "must be a list of addresses, rayling://token@host:port";
});

const bearerToken: Check = secret((value) =>
  typeof value === "string" && /^[\x21-\x7e]{32,}$/.test(value)
    ? undefined
    : "must be a token of 32 characters at least, without spaces",
);

const initChecks: Checks<InitOptions> = {
  numCpus: amount,
  numGpus: gpus,
  memory: bytes,
  resources,
  labels,
  address: text,
  bundles: reservedBundles,
  nodes: addresses,
  reconnectTimeoutMs: timerMs,
  runtimeEnv: ofSession,
  tls: credentialFiles,
  namespace: text,
  prewarm: (value) => count(0)(value) ?? atMost(mostPrewarmed)(value),
  objectStoreMemory: count(1024 * 1024),
  spillDirectory: writableDirectory,
  development: flag,
  isolation: isolationKind,
  stuckWarningMs: count(0, "fraction"),
  deadlocks: (value) =>
    value === "reject" || value === "warn" ? undefined : 'must be "reject" or "warn"',
  logToDriver: (value) =>
    value === "raw" || typeof value === "boolean" ? undefined : 'must be true, false or "raw"',
  taskEvents: flag,
  metricsPort: portNumber,
  metricsToken: bearerToken,
  dashboard: dashboardPlace,
  controlSocket: flag,
  ignoreReinitError: flag,
};

/**
 * Ends every actor and worker; resolves when no thread is left. Pending work rejects with
 * SessionEndedError, and so does later use of the session's refs and handles. Idempotent; inside an
 * actor it does nothing.
 */
export async function shutdown(): Promise<void> {
  if (isDriverCode()) return never();
  const { driver } = slot;
  if (driver !== undefined) {
    slot.driver = undefined;
    slot.hasEnded = true;
    setCurrentCaller(undefined, "", false);
    // The callers that ended earlier sessions already got their errors.
    slot.closing = Promise.all([slot.closing.catch(() => undefined), driver.close()]);
  }
  await slot.closing;
}

/** Whether the runtime is started here; never starts it. */
export function isInitialized(): boolean {
  return !isDriverCode(false) && currentCaller() !== undefined;
}

/**
 * Returns the runtime, starting it if necessary.
 *
 * @throws DriverCodeStopped; RaySystemError, or SessionEndedError after a session, when none may be
 * started
 */
export function useCaller(): Caller {
  closeCounts();
  const loading = currentLoading();
  if (loading !== undefined) {
    loading.onDriverCode();
    throw new DriverCodeStopped(loading.moduleUrl);
  }
  const caller = currentCaller();
  if (caller !== undefined) return caller;
  checkMayStart();
  return start({}).caller;
}

/**
 * Resolves with the directory's answer; the process lives until then. Never resolves for the code
 * of a driver that a host loads.
 */
export function asked<T>(ask: (directory: Directory) => Promise<T> | T): Promise<T> {
  if (isDriverCode()) return never();
  const { waiting, directory } = useCaller();
  return waiting.asking(ask(directory));
}

/** Releases something of the session, unless the end of the session has already done that. */
export async function letGo(end: () => Promise<unknown>): Promise<void> {
  if (currentCaller() === undefined) return;
  try {
    await end();
  } catch (error) {
    if (!(error instanceof SessionEndedError)) throw error;
  }
}

/** Whether this code runs because a host imports its module; the caller then returns `never()`. */
export function isDriverCode(stops = true): boolean {
  if (stops) closeCounts();
  const loading = currentLoading();
  if (loading !== undefined && stops) loading.onDriverCode();
  return loading !== undefined;
}

export function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** @throws RaySystemError, or SessionEndedError after a session, where only init may start it */
function checkMayStart(): void {
  if (slot.driver !== undefined || process.env["RAYLING_AUTO_INIT"] !== "0") return;
  const message = "the runtime has not been started: call init first (RAYLING_AUTO_INIT is 0)";
  throw slot.hasEnded ? new SessionEndedError(message) : new RaySystemError(message);
}

function start(options: InitOptions): Driver {
  refusePlace();
  noteUsedModules();
  const driver = new Driver(readInitOptions(options));
  slot.driver = driver;
  keepCompiledAfter(aWhileMs);
  setCurrentCaller(driver.caller, driver.namespace, driver.hasEngine);
  return driver;
}
