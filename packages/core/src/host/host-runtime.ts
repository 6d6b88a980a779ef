/**
 * The runtime of a host, whatever it runs in: its caller, its actors, its tasks, the control that the driver has of it.
 *
 * Composition only: what the parts do is in their files. A thread and a process differ in how they
 * come to their channels and in how they end, which their entry points give in as the wiring.
 */
import type { Remote } from "comlink";
import { Call } from "../caller/calls/call.ts";
import { Caller } from "../caller/caller.ts";
import { setCurrentCaller } from "../caller/current.ts";
import { CycleWatch } from "../caller/waits/cycle-watch.ts";
import type { TaskScope } from "../caller/waits/task-scope.ts";
import type { Waitable } from "../caller/waits/waitable.ts";
import { Waiting } from "../caller/waits/waiting.ts";
import { TaskEvents } from "../inside/task-events.ts";
import { causeFromData } from "../protocol/cause.ts";
import { limitGarbage } from "../protocol/shared-memory.ts";
import type { CallMessage } from "../rpc/session/incoming-calls.ts";
import type { Session } from "../rpc/session/session.ts";
import type { DeathCause } from "../shared/errors.ts";
import type { Budget } from "../store/budget.ts";
import { ImmutabilityCheck } from "../store/immutability.ts";
import { ObjectEntry } from "../store/object-entry.ts";
import { SpillFiles } from "../store/spill-files.ts";
import type { Channel } from "../transport/channel.ts";
import { renew } from "../transport/tls/credentials.ts";
import { drainAll } from "../transport/drain.ts";
import { PendingArguments } from "./calls/pending-arguments.ts";
import type { DriverControl, HostControl, HostIdentity, HostStats } from "./control.ts";
import type { HostListener, HostListenerParts } from "./ways/host-listener.ts";
import { errorClasses } from "./code/error-classes.ts";
import { Execution } from "./calls/execution.ts";
import { HostedActors } from "./calls/hosted-actors.ts";
import { HostedTasks } from "./calls/hosted-tasks.ts";
import { Idleness } from "./calls/idleness.ts";
import { Instance } from "./calls/instance.ts";
import { guardDriverCode, Loader } from "./code/loader.ts";
import { takeProgram } from "./code/program.ts";
import { type RemoteDirectory, remoteDirectory } from "./remote-directory.ts";
import { Reporter } from "./reporter.ts";
import { runTask, taskTarget } from "./calls/task-runner.ts";
import { warnOfServers } from "./code/top-level.ts";
import { viewHost } from "./view.ts";
import { foundCycle, taskNodeId, waitNodesOf } from "./wait-nodes.ts";
import { DirectChannels } from "./ways/direct-channels.ts";

export interface HostWiring {
  readonly identity: HostIdentity;
  readonly driver: Remote<DriverControl>;
  /** The channel to the driver; `explain` resolves when the driver is known to be gone. */
  readonly data: (explain: () => Promise<DeathCause>) => Channel;
  /** Where other hosts can dial it, if they are to. */
  readonly door?: (parts: Pick<HostListenerParts, "death" | "onChannel">) => HostListener;
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
  const host = new HostRuntime(wiring, new Loader());
  // Answers that are ready leave before the host does, whatever ends it.
  process.on("exit", () => host.lastWords());
  setCurrentCaller(host.caller, identity.namespace);
  // A host that cannot talk to its driver has no session any more, and soon ends.
  void host.ended.then(({ message }) =>
    host.caller.end({ kind: "shutdown", message: `its driver has ended: ${message}` }),
  );
  return host.control;
}

/** What makes a host, and nothing of the thread that it is in. */
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
  /** It ends soon, and starts nothing more. */
  #isLeaving = false;

  /** @param loader finds what actors and tasks run */
  constructor(wiring: HostWiring, loader: Pick<Loader, "find">) {
    const { identity, driver } = wiring;
    const { hostId, driverId } = identity;
    this.#wiring = wiring;
    this.#loader = loader;
    this.#driver = driver;
    const death = (peerId: string): Promise<DeathCause> => this.#death(peerId);
    const door = wiring.door?.({
      death,
      onChannel: (peerId, channel) => this.#begin(peerId, this.#direct.keep(channel)),
    });
    this.#direct = new DirectChannels({ hostId, door, death, network: identity.network });
    this.#directory = remoteDirectory(driver, hostId, this.#direct, (values) => {
      for (const value of values) this.caller.references.exportTo(driverId, value.references ?? []);
    });
    const events = identity.inside.taskEvents ? new TaskEvents() : undefined;
    this.#reporter = new Reporter(events, (report) => {
      // A driver that cannot be told anything is ending, and this host with it.
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

  /** Sends what is ready, at once: the host is about to end. */
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
      waitNodes: (ids) => waitNodesOf(caller, this.#idleness, ids),
      foundCycle: (id, steps, rejects) => foundCycle(caller, id, steps, rejects),
      report: () => this.#reporter.take(),
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
    // An actor that is not here is not waited for.
    const isHere = target === taskTarget || instance !== undefined;
    if (isHere && (call.dependencies.length > 0 || !this.#pending.isEmpty)) {
      if (this.#pending.takes(call, session, instance?.info.isOrdered ?? false)) return;
    }
    this.#run(call, session);
  }

  #run(call: CallMessage, session: Session): void {
    // Its caller has heard that it never began.
    if (this.#isLeaving) return;
    const { target } = call.route;
    if (target === taskTarget) {
      return void runTask(call, session, this.#loader, this.caller, this.#tasks);
    }
    const instance = this.#actors.get(target);
    if (instance !== undefined) return instance.receive(call, session);
    // It was here, or the way to it is out of date: the directory knows what became of it.
    session.answer({ kind: "absent", id: call.id });
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
    await this.caller.objects.handOverAll(this.caller.sessions.open);
    this.#isLeaving = this.#actors.size === 0 && this.#tasks.size === 0;
    if (this.#isLeaving) tellLeaving(this.caller.sessions.open);
    this.caller.sessions.flush();
    await Promise.all(this.#channels().map((channel) => channel.drained()));
  }
}

/**
 * Whether somebody may wait for that task. Every cycle goes through a place in an actor that another
 * call waits for, or through an actor that is not created.
 */
function isAwaited(task: TaskScope, waitables: readonly Waitable[]): boolean {
  const { actor } = task;
  if (task instanceof Execution && actor instanceof Instance && actor.isAwaited(task)) return true;
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
