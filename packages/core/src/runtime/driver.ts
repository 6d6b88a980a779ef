/**
 * The composition root of a driver: it makes the parts, connects them, and ends them.
 *
 * Nothing that it starts keeps the process alive, except while a caller waits for an answer. Its
 * end leaves no thread, process, timer, port or file.
 */
import { Caller } from "../caller/caller.ts";
import { openWaits } from "../caller/waits/open-waits.ts";
import { viewCalls, viewObjects, viewStored } from "../caller/state-view.ts";
import { Waiting } from "../caller/waits/waiting-tasks.ts";
import { errorClasses } from "../host/code/error-classes.ts";
import { timedEvents } from "../telemetry/call-times.ts";
import { Metrics } from "../telemetry/metrics.ts";
import type { TaskEvents } from "../telemetry/task-events.ts";
import { Scheduler } from "../placement/scheduler.ts";
import type { DriverAbout } from "../rpc/commands.ts";
import type { RuntimeView } from "../rpc/state.ts";
import { type DeathCause, RaySystemError } from "../shared/errors.ts";
import { newId } from "../shared/ids.ts";
import { warn } from "../shared/text/warning.ts";
import { tellUnhandled } from "../store/unhandled.ts";
import { watchCredentials } from "../transport/tls/credential-watch.ts";
import { ControlSocket, endProcess } from "./control/control-socket.ts";
import { Deadlocks } from "./deadlocks.ts";
import { LocalDirectory } from "./directory.ts";
import { DriverEndpoints, killActor } from "./endpoints.ts";
import { EngineSession } from "./engine/engine-session.ts";
import type { Host } from "./launch/host.ts";
import { HostLogs } from "./observe/host-logs.ts";
import type { DriverSettings } from "./init-options.ts";
import { Inspector } from "./observe/inspector.ts";
import { AddressList } from "./nodes/named-machines.ts";
import { localNode } from "./nodes/joined-node.ts";
import { JoinedNodes } from "./nodes/joined-nodes.ts";
import { KeepAlive } from "./keep-alive.ts";
import { Launcher } from "./launch/launcher.ts";
import { ActorSlots } from "./actors/actor-slots.ts";
import { SessionStore } from "./session-store.ts";

/** The calls of the driver's own code. */
interface OwnRecords {
  readonly events: TaskEvents | undefined;
  /** Calls that end with the session are noted there, and not for the next one. */
  readonly callTimes: Metrics;
}

export class Driver {
  readonly caller: Caller;
  readonly namespace: string;
  readonly endpoints: DriverEndpoints;
  readonly #settings: DriverSettings;
  readonly #about: DriverAbout;
  readonly #nodeId: string;
  readonly #logs: HostLogs;
  readonly #records: OwnRecords;
  readonly #objectStore: SessionStore;
  readonly #keepAlive: KeepAlive = new KeepAlive();
  readonly #engine: EngineSession | undefined;
  readonly #inspector: Inspector;
  readonly #directory: LocalDirectory;
  readonly #deadlocks: Deadlocks;
  readonly #launcher: Launcher;
  readonly #joined: JoinedNodes;
  readonly #control: ControlSocket | undefined;
  readonly #endWatch: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: DriverSettings) {
    this.#settings = settings;
    this.#about = aboutThisProcess(settings.namespace);
    const { driverId, namespace } = this.#about;
    this.namespace = namespace;
    const { inside, network } = settings;
    this.#logs = new HostLogs(inside.logToDriver);
    const callTimes = new Metrics();
    this.#records = {
      events: inside.taskEvents ? timedEvents(callTimes) : undefined,
      callTimes,
    };
    this.#objectStore = new SessionStore({
      driverId,
      limitBytes: settings.objectStoreMemory,
      root: settings.spillDirectory,
      isDevelopment: settings.isDevelopment,
    });
    this.#engine = engineOf(settings, this.#about);
    this.#inspector = this.#newInspector();
    this.#directory = this.#newDirectory();
    this.endpoints = new DriverEndpoints({
      inspector: this.#inspector,
      logs: this.#logs,
      directory: this.#directory,
    });
    const { cluster } = this.#directory;
    const { resources, labels } = settings;
    const node = cluster.addNode({ nodeName: undefined, resources, labels });
    this.#nodeId = node.nodeId;
    this.caller = this.#newCaller(node.labels);
    this.#deadlocks = new Deadlocks({
      driverId,
      caller: () => this.caller,
      directory: () => this.#directory,
      rejects: settings.rejectsDeadlocks,
    });
    this.#launcher = this.#newLauncher();
    this.#endWatch =
      settings.credentials &&
      watchCredentials(settings.credentials, {
        tell: warn,
        onRenewed: (renewed) => this.#launcher.renew(renewed),
      });
    const local = localNode({ driverId, network });
    if (local !== undefined) this.#launcher.addNode(this.#nodeId, local);
    const request = { driverId, network };
    const source = this.#engine?.nodes ?? new AddressList({ addresses: settings.nodes, request });
    this.#joined = new JoinedNodes({ source, cluster, launcher: this.#launcher });
    this.#control = this.#newControlSocket();
    this.#inspector.begin();
  }

  /** Whether the session runs on the cluster of an engine. */
  get hasEngine(): boolean {
    return this.#engine !== undefined;
  }

  /**
   * Makes the machines in `nodes` nodes of this session. Rejects when one is not reached, or
   * refuses this session.
   */
  join(): Promise<void> {
    return this.#joined.join();
  }

  /** Resolves when no thread, process or file is left. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#end({ kind: "shutdown", message: "the runtime was shut down" });
    return this.#closing;
  }

  async #end(cause: DeathCause): Promise<void> {
    // Ending hosts still need this process to turn, also when the last wait has been rejected.
    this.#keepAlive.hold();
    this.#endWatch?.();
    this.#joined.close();
    this.#deadlocks.close();
    // Waits end with the session's error before their calls fail one by one.
    this.caller.end(cause);
    this.#directory.end(cause);
    // All is closed, also where one part fails.
    const failures: unknown[] = [];
    const note = (error: unknown): void => void failures.push(error);
    await this.endpoints.close().catch(note);
    await this.#launcher.close(cause).catch(note);
    await this.#engine?.close().catch(note);
    this.#logs.close();
    await this.#control?.close(cause).catch(note);
    tellUnhandled();
    await this.caller.objects.memory.close().catch(note);
    await this.#objectStore.close().catch(note);
    this.#keepAlive.close();
    this.#inspector.end();
    if (failures.length > 0) throw failures[0];
  }

  #newInspector(): Inspector {
    return new Inspector({
      driverId: this.#about.driverId,
      nodeId: () => this.#nodeId,
      directory: () => this.#directory,
      viewDriver: () => viewDriver(this.caller),
      viewWaits: () => openWaits(this.caller),
      usedBytes: () => this.caller.objects.memory.bytesOfProcess,
      limitBytes: this.#objectStore.budget.limitBytes,
      about: this.#about,
      ownEvents: this.#records.events,
      ownTimes: this.#records.callTimes,
    });
  }

  #newDirectory(): LocalDirectory {
    const { numCpus, isolation, graceMs } = this.#settings;
    const { driverId, namespace } = this.#about;
    return new LocalDirectory(
      {
        driverId,
        namespace,
        maxIdleWorkers: Math.max(8, 2 * Math.ceil(numCpus)),
        engine: this.#engine,
        inside: () => this.#inspector,
        suspect: (ids) => this.#deadlocks.suspect(ids),
      },
      {
        caller: () => this.caller,
        launcher: () => this.#launcher,
        placement: this.#engine?.placement ?? new Scheduler(),
        slots: new ActorSlots(
          () => this.#launcher,
          (nodeId) => Math.max(1, this.#directory.cluster.cpus(nodeId)),
        ),
        isolation,
        graceMs,
      },
    );
  }

  #newCaller(nodeLabels: Readonly<Record<string, string>>): Caller {
    const { driverId, jobId } = this.#about;
    const waiting = new Waiting(() => this.#keepAlive.set(waiting.isWaiting));
    return new Caller({
      id: driverId,
      jobId,
      nodeId: this.#nodeId,
      nodeLabels,
      objectStore: this.#objectStore,
      directory: this.#directory.answers,
      errorClasses,
      waiting,
      stuckWarningMs: this.#settings.inside.stuckWarningMs,
      events: this.#records.events,
      onCall: (call, session) => {
        const error = new RaySystemError(`the driver has no actor ${call.route.target}`);
        session.answer({
          kind: "failure",
          id: call.id,
          error: this.caller.values.codec.encodeFailure(error),
        });
      },
    });
  }

  #newLauncher(): Launcher {
    const { driverId, jobId, namespace } = this.#about;
    const { inside, runtimeEnv, network, prewarm, keepsPrewarm, objectStoreMemory } =
      this.#settings;
    return new Launcher({
      driverId,
      jobId,
      namespace,
      hasEngine: this.hasEngine,
      nodeId: this.#nodeId,
      labelsOf: (of) => this.#directory.cluster.labels(of),
      inside,
      runtimeEnv,
      network,
      output: this.#logs.output,
      prewarm,
      keepsPrewarm,
      objectStoreMemory,
      objectStoreFor: (hostId) => this.#objectStore.shareFor(hostId),
      controlFor: (hostId) => this.#directory.controlFor(hostId),
      onLaunch: (host) => this.#launched(host),
      onTaken: (host, handedDown) => this.#directory.handsDown(host.id, handedDown),
    });
  }

  #launched(host: Host): void {
    this.#directory.addHost(host);
    void host.exited.then((cause) => {
      this.#logs.hostEnded(host.id);
      this.#inspector.hostEnded(host, cause);
      return this.#objectStore.hostGone(host.id);
    });
    // A host without its session is of no use.
    const session = this.caller.sessions.add(host.id, host.channel);
    void session.closed.then((cause) => host.terminate(cause));
  }

  #newControlSocket(): ControlSocket | undefined {
    if (!this.#settings.hasControlSocket) return undefined;
    return new ControlSocket(this.#about, {
      inspector: this.#inspector,
      lines: this.#logs.lines,
      hasEvents: this.#settings.inside.taskEvents,
      killActor: (actorId) => killActor(this.#directory, actorId, "the command line"),
      stop: () => void endProcess(() => this.close()),
    });
  }
}

/** Returns the cluster that the session runs on, if it names one. */
function engineOf(
  { address, bundles, network }: DriverSettings,
  { driverId, jobId, namespace }: DriverAbout,
): EngineSession | undefined {
  if (address === undefined) return undefined;
  return new EngineSession({ address, driverId, jobId, namespace, network }, bundles);
}

/** @param namespace default: a new one with the name of the job */
function aboutThisProcess(namespace: string | undefined): DriverAbout {
  const jobId = newId("job");
  return {
    driverId: newId("driver"),
    jobId,
    namespace: namespace ?? jobId,
    pid: process.pid,
    script: process.argv[1] ?? "node",
    startTimeMs: Date.now(),
  };
}

/** The driver runs no calls itself. */
function viewDriver(caller: Caller): RuntimeView {
  return {
    calls: viewCalls(caller),
    executions: [],
    objects: viewObjects(caller),
    stored: viewStored(caller),
    pid: process.pid,
  };
}
