/**
 * The runtime of a host, in a thread or a process: its caller, its actors, its tasks, and the
 * driver's control of it.
 *
 * This file is composition only. The entry points of threads and processes differ in their channels
 * and in how they end, and pass both in as the wiring.
 */
import type { Remote } from "comlink";
import { Call } from "../caller/calls/call.ts";
import { Caller } from "../caller/caller.ts";
import { setCurrentCaller } from "../caller/current.ts";
import { CycleWatch } from "../caller/waits/deadlock-watch.ts";
import type { TaskScope } from "../caller/waits/task-scope.ts";
import type { Waitable } from "../caller/waits/waitable.ts";
import { Waiting } from "../caller/waits/waiting-tasks.ts";
import { timedEvents } from "../telemetry/call-times.ts";
import { threadMetrics } from "../telemetry/metrics.ts";
import type { TaskEvents } from "../telemetry/task-events.ts";
import { causeFromData } from "../protocol/death-cause-data.ts";
import { limitGarbage } from "../protocol/shared-memory.ts";
import type { CallMessage } from "../protocol/message.ts";
import type { Session } from "../rpc/session/session.ts";
import { keepCompiledAfter } from "../shared/compiled/keep-compiled.ts";
import type { DeathCause } from "../shared/errors.ts";
import type { Budget } from "../store/memory-budget.ts";
import { ImmutabilityCheck } from "../store/immutability.ts";
import { ObjectEntry } from "../store/object-entry.ts";
import { SpillFiles } from "../store/spill-files.ts";
import type { Channel } from "../transport/channel.ts";
import { renew } from "../transport/tls/credentials.ts";
import { pause } from "../shared/machine/timers.ts";
import { drainAll } from "../transport/drain.ts";
import { PendingArguments } from "./calls/pending-arguments.ts";
import type { DriverControl, HostControl, HostIdentity, HostStats } from "./host-control.ts";
import type { HostListener, HostListenerParts } from "./channels/host-listener.ts";
import { errorClasses } from "./code/error-classes.ts";
import { Execution } from "./calls/execution.ts";
import { HostedActors } from "./calls/hosted-actors.ts";
import { HostedTasks } from "./calls/hosted-tasks.ts";
import { Idleness } from "./calls/idleness.ts";
import { Instance } from "./calls/actor/instance.ts";
import { letLook, lookAt } from "./calls/host-stack.ts";
import { guardDriverCode, Loader } from "./code/loader.ts";
import { takeProgram } from "./code/program.ts";
import { type RemoteDirectory, remoteDirectory } from "./remote-directory.ts";
import { Reporter } from "./reporter.ts";
import { runTask, taskTarget } from "./calls/task-runner.ts";
import { warnOfServers } from "./code/top-level.ts";
import { viewHost } from "./state-view.ts";
import { foundCycle, taskNodeId, waitNodesOf } from "./wait-nodes.ts";
import { DirectChannels } from "./channels/direct-channels.ts";

/** After the first call, when it is answered if it is a short one. */
const aMomentMs = 50;

/** The longest that the end of a host waits for the places of actors that it has called. */
const sentMs = 5_000;

/** Memory of dropped values that each host keeps for later ones, of the store's limit. */
const shareOfSpares = 1 / 8;

export interface HostWiring {
  readonly identity: HostIdentity;
  readonly driver: Remote<DriverControl>;
  /** Returns the channel to the driver; `explain` resolves when the driver is known to be gone. */
  readonly data: (explain: () => Promise<DeathCause>) => Channel;
  /** Makes the listener for other hosts, if they may dial this one. */
  readonly listen?: (parts: Pick<HostListenerParts, "death" | "onChannel">) => HostListener;
  readonly objectStore: {
    readonly budget: Budget;
    readonly spillDirectory: string;
    readonly isDevelopment: boolean;
  };
  /** Whether big results stay here because no memory is shared with the callers. */
  readonly keepsResults: boolean;
  /** Called with an uncaught error that ends the runtime. */
  readonly onFatal?: (error: unknown) => void;
}

/** Starts the host of this thread or process. Returns the driver's control of it. */
export function startHost(wiring: HostWiring): HostControl {
  const { identity, objectStore } = wiring;
  takeProgram(identity.program);
  limitGarbage(objectStore.budget.limitBytes, shareOfSpares);
  guardDriverCode(wiring.onFatal);
  warnOfServers();
  const host = new HostRuntime(wiring, new Loader());
  // Ready answers leave before the host ends, whatever ends it.
  process.on("exit", () => host.lastWords());
  setCurrentCaller(host.caller, identity.namespace, identity.hasEngine);
  letLook(host.caller);
  // A host without its driver has no session, and soon ends.
  void host.ended.then(({ message }) =>
    host.caller.end({ kind: "shutdown", message: `its driver has ended: ${message}` }),
  );
  return host.control;
}

/** The parts of a host that do not depend on its thread. */
export class HostRuntime {
  readonly control: HostControl;
  readonly caller: Caller;
  /** Resolves when its session with the driver is over. */
  readonly ended: Promise<DeathCause>;
  readonly #wiring: HostWiring;
  readonly #loader: Pick<Loader, "find">;
  readonly #driver: Remote<DriverControl>;
  readonly #directory: RemoteDirectory;
  readonly #direct: DirectChannels;
  readonly #data: Channel;
  readonly #reporter: Reporter;
  readonly #idleness: Idleness = new Idleness();
  readonly #pending: PendingArguments;
  readonly #actors: HostedActors;
  readonly #tasks: HostedTasks;
  /** Whether the host ends soon and starts no more calls. */
  #isLeaving = false;
  #hasCalls = false;

  /** @param loader finds the classes and functions of actors and tasks */
  constructor(wiring: HostWiring, loader: Pick<Loader, "find">) {
    const { identity, driver } = wiring;
    const { hostId, driverId } = identity;
    this.#wiring = wiring;
    this.#loader = loader;
    this.#driver = driver;
    const death = (peerId: string): Promise<DeathCause> => this.#death(peerId);
    const listener = wiring.listen?.({
      death,
      onChannel: (peerId, channel) => this.#begin(peerId, this.#direct.keep(channel)),
    });
    this.#direct = new DirectChannels({ hostId, listener, death, network: identity.network });
    this.#directory = remoteDirectory(driver, hostId, this.#direct, (values) => {
      for (const value of values) this.caller.references.exportTo(driverId, value.references ?? []);
    });
    const events = identity.inside.taskEvents ? timedEvents(threadMetrics()) : undefined;
    this.#reporter = new Reporter(events, (report) => {
      // A driver that cannot be reached is ending, and this host with it.
      void driver.reported(report).catch(() => undefined);
    });
    const waiting = new Waiting(() => this.#tasks.look());
    this.caller = this.#newCaller(waiting, events);
    this.#pending = new PendingArguments(this.caller, (call, session) => this.#run(call, session));
    this.#actors = new HostedActors({
      caller: this.caller,
      driver,
      idleness: this.#idleness,
      loader,
    });
    this.#tasks = new HostedTasks({
      waiting,
      idleness: this.#idleness,
      awaitsArguments: () => !this.#pending.isEmpty,
      onBlocked: (isBlocked) => this.#directory.setBlocked(hostId, isBlocked),
      run: (call, session) => this.#runTask(call, session),
    });
    const cycles = new CycleWatch(this.caller.stuck, {
      isAwaited: (task, waitables) => isAwaited(task, waitables),
      suspect: (suspects) => this.#suspect(suspects),
    });
    this.#data = wiring.data(() => death(driverId));
    this.ended = this.caller.sessions.add(driverId, this.#data).closed;
    void this.ended.then(() => cycles.close());
    this.control = this.#newControl();
  }

  /** Sends ready messages at once: the host is about to end. */
  lastWords(): void {
    this.#reporter.flush();
    this.caller.objects.handOver(this.caller.sessions.open);
    this.caller.sessions.flush();
    drainAll(this.#channels());
  }

  #newCaller(waiting: Waiting, events: TaskEvents | undefined): Caller {
    const { identity, keepsResults, objectStore } = this.#wiring;
    const { hostId, jobId, nodeId, nodeLabels, inside } = identity;
    const { budget, spillDirectory, isDevelopment } = objectStore;
    return new Caller({
      id: hostId,
      jobId,
      nodeId,
      nodeLabels,
      directory: this.#directory,
      errorClasses,
      waiting,
      stuckWarningMs: inside.stuckWarningMs,
      events,
      objectStore: {
        budget,
        files: new SpillFiles(spillDirectory, hostId),
        immutability: isDevelopment ? new ImmutabilityCheck() : undefined,
      },
      keepsResults,
      onCall: (call, session) => this.#onCall(call, session),
      // A worker runs one task at a time.
      concurrencyOf: (target) => (target === taskTarget ? 1 : this.#actors.concurrencyOf(target)),
    });
  }

  #newControl(): HostControl {
    const { caller } = this;
    const actors = this.#actors;
    return {
      create: (requests) => actors.create(requests),
      registered: () => this.#directory.registered(),
      abortSignal: (target, index, reason) => actors.abortSignal(target, index, reason),
      terminate: (target, cause) => actors.terminate(target, cause),
      discard: (targets) => actors.discard(targets),
      accept: async (peerId, way, wayId) => {
        this.#begin(peerId, await this.#direct.open(way, peerId, wayId));
      },
      address: () => this.#direct.address(),
      stats: () => this.#stats(),
      view: () => viewHost(caller),
      look: () => lookAt(caller, false),
      waitNodes: (ids) => waitNodesOf(caller, this.#idleness, ids),
      foundCycle: (id, steps, rejects) => foundCycle(caller, id, steps, rejects),
      report: () => this.#reporter.take(),
      forsaken: async (holder) => {
        const sessions = [...caller.sessions.open].filter(({ peerId }) => peerId === holder);
        await Promise.all(sessions.map(({ closed }) => closed));
        return this.#tasks.size === 0 && this.#pending.isEmpty;
      },
      renew: (renewed) => {
        const { credentials } = this.#wiring.identity.network;
        if (credentials !== undefined) renew(credentials, renewed);
      },
      stop: () => this.#stop(),
    };
  }

  async #death(peerId: string): Promise<DeathCause> {
    return causeFromData(await this.#driver.death(peerId));
  }

  #channels(): Channel[] {
    return [this.#data, ...this.#direct.channels];
  }

  #begin(peerId: string, channel: Channel): void {
    const session = this.caller.sessions.add(peerId, channel);
    if (this.#isLeaving) tellLeaving([session]);
  }

  #onCall(call: CallMessage, session: Session): void {
    const { target } = call.route;
    const instance = this.#actors.get(target);
    // Calls for an unknown actor do not wait for their arguments.
    const isHere = target === taskTarget || instance !== undefined;
    if (isHere && (call.dependencies.length > 0 || !this.#pending.isEmpty)) {
      if (this.#pending.takes(call, session, instance?.info.isOrdered ?? false)) return;
    }
    this.#run(call, session);
  }

  #run(call: CallMessage, session: Session): void {
    // The caller has learned that the call never began.
    if (this.#isLeaving) return;
    if (!this.#hasCalls) this.#firstCall();
    const { target } = call.route;
    if (target === taskTarget) return this.#tasks.receive(call, session);
    const instance = this.#actors.get(target);
    if (instance !== undefined) return instance.receive(call, session);
    // The actor was here, or the route to it is out of date: the directory knows its fate.
    session.answer({ kind: "absent", id: call.id });
  }

  #firstCall(): void {
    this.#hasCalls = true;
    keepCompiledAfter(aMomentMs);
  }

  #runTask(call: CallMessage, session: Session): Promise<void> {
    const { caller } = this;
    return runTask(call, session, { loader: this.#loader, caller, running: this.#tasks });
  }

  #suspect(suspects: readonly TaskScope[]): void {
    const ids = suspects.map((task) => taskNodeId(this.caller, task));
    void this.#driver.suspect(ids).catch(() => undefined);
  }

  #stats(): HostStats {
    const { caller } = this;
    return {
      hostId: this.#wiring.identity.hostId,
      actors: this.#actors.stats(),
      exportedObjects: caller.objects.store.exportedCount,
      objects: caller.objects.memory.stats,
      outstandingCalls: caller.calls.outstanding,
    };
  }

  async #stop(): Promise<void> {
    this.#reporter.flush();
    // The last calls of its code may still wait for their actor's place.
    await Promise.race([this.caller.calls.sent(), pause(sentMs, { ref: false })]);
    await this.caller.objects.handOverAll(this.caller.sessions.open);
    this.#isLeaving = this.#actors.size === 0 && this.#tasks.size === 0;
    if (this.#isLeaving) tellLeaving(this.caller.sessions.open);
    this.caller.sessions.flush();
    await Promise.all(this.#channels().map((channel) => channel.drained()));
  }
}

/**
 * Whether another call may wait for that task. Every cycle goes through a place in an actor that
 * another call waits for, or through an actor that is not created.
 */
function isAwaited(task: TaskScope, waitables: readonly Waitable[]): boolean {
  const { actor } = task;
  if (task instanceof Execution && actor instanceof Instance && actor.groups.isAwaited(task))
    return true;
  return waitables.some(
    (one) =>
      one instanceof ObjectEntry && one.producer instanceof Call && one.producer.stage === "actor",
  );
}

function tellLeaving(sessions: Iterable<Session>): void {
  for (const session of sessions) {
    session.leave();
    session.flush();
  }
}
