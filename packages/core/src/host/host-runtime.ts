/**
 * The runtime of a host, whatever it runs in: its caller, its instances, its tasks, the control that the driver has of it.
 *
 * Composition only: what the parts do is in their files. A thread and a process differ in how they come to their channels and in how they end,
 * which their entry points give in as the wiring.
 */
import type { Remote } from "comlink";
import { Call } from "../caller/call.ts";
import { Caller } from "../caller/caller.ts";
import { CycleWatch } from "../caller/cycle-watch.ts";
import { TaskEvents } from "../inside/task-events.ts";
import { setCurrentCaller } from "../caller/current.ts";
import type { TaskScope } from "../caller/task-scope.ts";
import type { Waitable } from "../caller/waitable.ts";
import { Waiting } from "../caller/waiting.ts";
import { type CauseData, causeFromData, causeToData } from "../protocol/cause.ts";
import type { Encoded } from "../protocol/codec.ts";
import { limitGarbage } from "../protocol/shared-memory.ts";
import type { CallMessage, Session } from "../rpc/session.ts";
import { totalConcurrency } from "../rpc/directory.ts";
import { type DeathCause, RemoteNotRegisteredError } from "../shared/errors.ts";
import type { Budget } from "../store/budget.ts";
import { ImmutabilityCheck } from "../store/immutability.ts";
import { ObjectEntry } from "../store/object-entry.ts";
import { SpillFiles } from "../store/spill-files.ts";
import type { Channel } from "../transport/channel.ts";
import { drainAll } from "../transport/drain.ts";
import { renew } from "../transport/credentials.ts";
import { Arrivals } from "./arrivals.ts";
import type {
  CreateRequest,
  CreateResult,
  DriverControl,
  FailedCreation,
  HostControl,
  HostIdentity,
  HostStats,
  Way,
} from "./control.ts";
import type { Door, DoorParts } from "./door.ts";
import { errorClasses } from "./error-classes.ts";
import { Execution } from "./execution.ts";
import { Idleness } from "./idleness.ts";
import { decodeArguments, Instance } from "./instance.ts";
import { guardDriverCode, Loader } from "./loader.ts";
import { takeProgram } from "./program.ts";
import { Reporter } from "./reporter.ts";
import { remoteDirectory } from "./remote-directory.ts";
import { countSignals } from "./received-signals.ts";
import { type RunningTasks, runTask, taskTarget } from "./task-runner.ts";
import { warnOfServers } from "./top-level.ts";
import { viewHost } from "./view.ts";
import { foundCycle, taskNodeId, waitNodesOf } from "./wait-nodes.ts";
import { Ways } from "./ways.ts";

export interface HostWiring {
  readonly identity: HostIdentity;
  readonly driver: Remote<DriverControl>;
  /** The channel to the driver; `explain` resolves when the driver is known to be gone. */
  readonly data: (explain: () => Promise<DeathCause>) => Channel;
  /** Where other hosts can dial it, if they are to. */
  readonly door?: (parts: Pick<DoorParts, "death" | "onChannel">) => Door;
  readonly objectStore: {
    readonly budget: Budget;
    readonly spillDirectory: string;
    readonly isDevelopment: boolean;
  };
  /** Big results stay here: no memory is shared with those who called. */
  readonly keepsResults: boolean;
  /** The runtime ends because of this error, which nobody caught. */
  readonly onFatal?: (error: unknown) => void;
}

/** The host of this thread or process. Returns the control that the driver is to have of it. */
export function startHost(wiring: HostWiring): HostControl {
  const { identity, objectStore } = wiring;
  takeProgram(identity.program);
  limitGarbage(objectStore.budget.limitBytes);
  guardDriverCode(wiring.onFatal);
  warnOfServers();
  const host = composeHost(wiring, new Loader());
  // Answers that are ready leave before the host does, whatever ends it.
  process.on("exit", host.lastWords);
  setCurrentCaller(host.caller, identity.namespace);
  // A host that cannot talk to its driver has no session any more, and soon ends.
  void host.ended.then(({ message }) =>
    host.caller.end({ kind: "shutdown", message: `its driver has ended: ${message}` }),
  );
  return host.control;
}

/** What makes a host, and nothing of the thread that it is in. */
export interface ComposedHost {
  readonly control: HostControl;
  readonly caller: Caller;
  /** Sends what is ready, at once: the host is about to end. */
  readonly lastWords: () => void;
  /** Resolves when its session with the driver is over. */
  readonly ended: Promise<DeathCause>;
}

/** @param loader finds what actors and tasks run */
export function composeHost(wiring: HostWiring, loader: Pick<Loader, "find">): ComposedHost {
  const { identity, driver } = wiring;
  const { hostId, driverId } = identity;
  const instances: Map<string, Instance> = new Map();
  /** On their way to be instances. */
  const creating: Set<string> = new Set();
  const death = async (peerId: string): Promise<DeathCause> =>
    causeFromData(await driver.death(peerId));
  const door = wiring.door?.({
    death,
    onChannel: (peerId, channel) => begin(peerId, ways.keep(channel)),
  });
  const ways: Ways = new Ways({ hostId, door, death, network: identity.network });
  const directory = remoteDirectory(driver, hostId, ways, (values) => {
    for (const value of values) caller.exportReferences(value.references ?? [], driverId);
  });
  const tasks = new Set<TaskScope>();
  let isLeaving = false;
  let isBlocked = false;
  const waiting = new Waiting(tellBlocked);
  const events = identity.inside.taskEvents ? new TaskEvents() : undefined;
  const reporter = new Reporter(events, (report) => {
    // A driver that cannot be told anything is ending, and this host with it.
    void driver.reported(report).catch(() => undefined);
  });
  const { budget, spillDirectory, isDevelopment } = wiring.objectStore;
  const caller: Caller = new Caller({
    id: hostId,
    jobId: identity.jobId,
    nodeId: identity.nodeId,
    nodeLabels: identity.nodeLabels,
    directory,
    errorClasses,
    waiting,
    stuckWarningMs: identity.inside.stuckWarningMs,
    events,
    objectStore: {
      budget,
      files: new SpillFiles(spillDirectory, hostId),
      immutability: isDevelopment ? new ImmutabilityCheck() : undefined,
    },
    keepsResults: wiring.keepsResults,
    onCall,
    concurrencyOf,
  });
  const idleness = new Idleness();
  const cycles = new CycleWatch(caller.stuck, {
    isAwaited,
    suspect(suspects) {
      const ids = suspects.map((task) => taskNodeId(caller, task));
      void driver.suspect(ids).catch(() => undefined);
    },
  });
  const arrivals = new Arrivals(caller, run);
  const data = wiring.data(() => death(driverId));
  const channels = (): Channel[] => [data, ...ways.channels];
  const driverSession = caller.addSession(driverId, data);
  void driverSession.closed.then(() => cycles.close());

  function lastWords(): void {
    reporter.flush();
    caller.handOver();
    caller.flush();
    drainAll(channels());
  }

  /** A worker runs one task at a time. */
  function concurrencyOf(target: string): number | undefined {
    if (target === taskTarget) return 1;
    const info = instances.get(target)?.info;
    return info === undefined ? undefined : totalConcurrency(info);
  }

  function onCall(call: CallMessage, session: Session): void {
    const { target } = call.route;
    // Who is not here is not waited for.
    const isHere = target === taskTarget || instances.has(target);
    if (isHere && (call.dependencies.length > 0 || !arrivals.isEmpty)) {
      const isOrdered = instances.get(target)?.info.isOrdered ?? false;
      if (arrivals.takes(call, session, isOrdered)) return;
    }
    run(call, session);
  }

  function run(call: CallMessage, session: Session): void {
    // Who sent it has heard that it never began.
    if (isLeaving) return;
    if (call.route.target === taskTarget) {
      return void runTask(call, session, loader, caller, runningTasks);
    }
    const instance = instances.get(call.route.target);
    if (instance !== undefined) return instance.receive(call, session);
    // It was here, or the way to it is out of date: the directory knows what became of it.
    session.answerAbsent(call.id);
  }

  /** Every cycle goes through a place in an actor that another call waits for, or through an actor that is not created. */
  function isAwaited(task: TaskScope, waitables: readonly Waitable[]): boolean {
    const { actor } = task;
    if (task instanceof Execution && actor instanceof Instance && actor.isAwaited(task))
      return true;
    return waitables.some(
      (one) =>
        one instanceof ObjectEntry &&
        one.producer instanceof Call &&
        one.producer.stage === "actor",
    );
  }

  const runningTasks: RunningTasks = {
    begun(task) {
      idleness.look();
      idleness.begun();
      tasks.add(task);
      tellBlocked();
    },
    ended(task) {
      idleness.ended(1);
      tasks.delete(task);
      // What it left waiting does not count for the next one.
      tellBlocked();
    },
  };

  /** A worker's CPU is for others while all that it runs waits for them; before it runs anything, while it waits for the arguments. */
  function tellBlocked(): void {
    const waits =
      tasks.size === 0
        ? !arrivals.isEmpty && waiting.isWaitingIn(undefined)
        : [...tasks].every((task) => waiting.isWaitingIn(task));
    if (waits === isBlocked) return;
    isBlocked = waits;
    directory.setBlocked(hostId, waits);
  }

  async function create(requests: readonly CreateRequest[]): Promise<readonly CreateResult[]> {
    for (const { target } of requests) creating.add(target);
    return Promise.all(requests.map((request) => createOne(request)));
  }

  async function createOne(request: CreateRequest): Promise<CreateResult> {
    const { target, key, args, ...rest } = request;
    const { incarnation } = request;
    const { actorId } = request.info;
    const values = [args.values, ...args.dependencies];
    let ActorClass: new (...args: unknown[]) => object;
    idleness.look();
    try {
      ActorClass = (await loader.find(key)) as typeof ActorClass;
    } catch (error) {
      creating.delete(target);
      values.forEach((value) => caller.decline(value));
      const kind =
        error instanceof RemoteNotRegisteredError ? "not-registered" : ("load-failed" as const);
      return failed(kind, error);
    }
    // It was ended while its module was loaded.
    if (!creating.delete(target)) {
      values.forEach((value) => caller.decline(value));
      return { ok: true };
    }
    try {
      const instance = new Instance({
        ...rest,
        caller,
        idleness,
        signalCount: countSignals(args.dependencies),
        findFunction: (functionKey) => loader.find(functionKey),
        onExiting: (cause) => {
          void driver.exiting(actorId, incarnation, causeToData(cause)).catch(() => undefined);
        },
        onExit: (cause) => {
          instances.delete(target);
          void driver.exited(actorId, incarnation, causeToData(cause)).catch(() => undefined);
        },
      });
      const decoded = decodeArguments(
        caller.codec,
        { arguments: args.values, dependencies: args.dependencies },
        () => instance.signals,
      );
      instance.construct(ActorClass, decoded);
      instances.set(target, instance);
      return { ok: true };
    } catch (error) {
      values.forEach((value) => caller.decline(value));
      return failed("init-failed", error);
    }
  }

  function abortSignal(target: string, index: number, reason: Encoded): void {
    const instance = instances.get(target);
    if (instance === undefined) caller.decline(reason);
    else instance.signals.aborted(index, reason);
  }

  /** Its calls in the queue end; the hook runs when what runs has ended. */
  function terminate(target: string, cause: CauseData): void {
    instances.get(target)?.exit(causeFromData(cause));
  }

  function discard(targets: readonly string[]): void {
    for (const target of targets) {
      creating.delete(target);
      instances.get(target)?.discard();
      instances.delete(target);
    }
    caller.flush();
  }

  function tellLeaving(sessions: Iterable<Session>): void {
    for (const session of sessions) {
      session.leave();
      session.flush();
    }
  }

  function failed(kind: FailedCreation["kind"], error: unknown): CreateResult {
    return {
      ok: false,
      kind,
      failure: caller.codec.decodeFailure(caller.codec.encodeFailure(error)),
    };
  }

  async function accept(peerId: string, way: Way, wayId: string): Promise<void> {
    begin(peerId, await ways.open(way, peerId, wayId));
  }

  function begin(peerId: string, channel: Channel): void {
    const session = caller.addSession(peerId, channel);
    if (isLeaving) tellLeaving([session]);
  }

  function stats(): HostStats {
    const actors = [...instances.values()].map((instance) => ({
      actorId: instance.info.actorId,
      className: instance.info.className,
      ...instance.stats,
    }));
    return {
      hostId,
      actors,
      exportedObjects: caller.store.exportedCount,
      objects: caller.memory.stats,
      outstandingCalls: caller.outstandingCalls,
    };
  }

  async function stop(): Promise<void> {
    reporter.flush();
    await caller.handOverAll();
    isLeaving = instances.size === 0 && tasks.size === 0;
    if (isLeaving) tellLeaving(caller.sessions);
    caller.flush();
    await Promise.all(channels().map((channel) => channel.drained()));
  }

  const control: HostControl = {
    create,
    registered: () => directory.registered(),
    abortSignal,
    terminate,
    discard,
    accept,
    address: () => ways.address(),
    stats,
    view: () => viewHost(caller),
    waitNodes: (ids) => waitNodesOf(caller, idleness, ids),
    foundCycle: (id, steps, rejects) => foundCycle(caller, id, steps, rejects),
    report: () => reporter.take(),
    renew(renewed) {
      const { credentials } = identity.network;
      if (credentials !== undefined) renew(credentials, renewed);
    },
    stop,
  };
  return { control, caller, lastWords, ended: driverSession.closed };
}
