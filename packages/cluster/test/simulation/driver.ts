/** The driver of a simulated world: what a session is made of (core's runtime/driver.ts), without what belongs to a real process. */
import { provideNodes } from "../../../core/src/runtime/nodes/joined-node.ts";
import { Caller } from "../../../core/src/caller/caller.ts";
import { Waiting } from "../../../core/src/caller/waits/waiting-tasks.ts";
import { Scheduler } from "../../../core/src/placement/scheduler.ts";
import { makeDemand } from "../../../core/src/rpc/resource-demand.ts";
import type { ActorInfo, ActorSpec } from "../../../core/src/rpc/directory.ts";
import { LocalDirectory } from "../../../core/src/runtime/directory.ts";
import { AddressList } from "../../../core/src/runtime/nodes/named-machines.ts";
import { JoinedNodes } from "../../../core/src/runtime/nodes/joined-nodes.ts";
import { Launcher } from "../../../core/src/runtime/launch/launcher.ts";
import { ActorSlots } from "../../../core/src/runtime/actors/actor-slots.ts";
import type { Supervisor } from "../../../core/src/runtime/actors/supervisor.ts";
import { type DeathCause, RaySystemError } from "../../../core/src/shared/errors.ts";
import { newId } from "../../../core/src/shared/ids.ts";
import { newBudget } from "../../../core/src/store/memory-budget.ts";
import { nodeJoiner } from "../../src/join.ts";
import type { Process } from "./world.ts";

provideNodes(async () => nodeJoiner());

export class SimulatedDriver {
  readonly process: Process = { name: "driver", isAlive: true, busyUntilMs: 0 };
  readonly caller: Caller;
  readonly directory: LocalDirectory;
  readonly #scheduler: Scheduler = new Scheduler();
  readonly #launcher: Launcher;
  readonly #joined: JoinedNodes;

  /** @param onLost called when a host has ended, or was given up */
  constructor(addresses: readonly string[], reconnectTimeoutMs: number, onLost: () => void) {
    const driverId = newId("driver");
    const network = { reconnectTimeoutMs };
    const budget = newBudget(2 ** 30);
    this.directory = new LocalDirectory(
      {
        driverId,
        namespace: "simulated",
        maxIdleWorkers: 4,
        engine: undefined,
        inside: () => ({ reported: () => undefined }) as never,
        suspect: () => undefined,
      },
      {
        caller: () => this.caller,
        launcher: () => this.#launcher,
        placement: this.#scheduler,
        slots: new ActorSlots(
          () => this.#launcher,
          () => 1,
        ),
        isolation: "process",
        graceMs: 5000,
      },
    );
    const { nodeId, labels } = this.directory.cluster.addNode({
      nodeName: undefined,
      resources: { CPU: 0 },
      labels: {},
    });
    this.caller = new Caller({
      id: driverId,
      jobId: "job",
      nodeId,
      nodeLabels: labels,
      objectStore: { budget, files: undefined as never, immutability: undefined },
      directory: this.directory.answers,
      errorClasses: { findOrigin: () => undefined, findClass: async () => undefined } as never,
      waiting: new Waiting(() => undefined),
      stuckWarningMs: 0,
      events: undefined,
      onCall: (call, session) => {
        const error = new RaySystemError(`the driver has no actor ${call.route.target}`);
        session.answer({
          kind: "failure",
          id: call.id,
          error: this.caller.values.codec.encodeFailure(error),
        });
      },
    });
    this.#launcher = new Launcher({
      driverId,
      jobId: "job",
      namespace: "simulated",
      hasEngine: false,
      nodeId,
      labelsOf: (of) => this.directory.cluster.labels(of),
      inside: { stuckWarningMs: 0, logToDriver: false, taskEvents: false },
      runtimeEnv: undefined,
      network,
      output: { text: () => undefined, line: () => undefined },
      prewarm: 0,
      keepsPrewarm: false,
      objectStoreMemory: undefined,
      objectStoreFor: () => ({
        budget: budget.share(),
        spillDirectory: "/nowhere",
        isDevelopment: false,
      }),
      controlFor: (hostId) => this.directory.controlFor(hostId),
      onTaken: (host, handedDown) => this.directory.handsDown(host.id, handedDown),
      onLaunch: (host) => {
        this.directory.addHost(host);
        void host.exited.then(onLost);
        void this.caller.sessions
          .add(host.id, host.channel)
          .closed.then((cause) => host.terminate(cause));
      },
    });
    this.#joined = new JoinedNodes({
      source: new AddressList({
        addresses,
        request: { driverId, network },
      }),
      cluster: this.directory.cluster,
      launcher: this.#launcher,
    });
  }

  join(): Promise<void> {
    return this.#joined.join();
  }

  /** Creates an actor, which is placed as soon as there is room. Returns its handle, which does not keep it alive. */
  create(
    options: Pick<ActorSpec, "maxRestarts"> &
      Pick<
        ActorInfo,
        "className" | "methods" | "methodOptions" | "maxConcurrency" | "maxTaskRetries"
      >,
  ): { readonly info: ActorInfo; readonly handle: object } {
    const { maxRestarts, ...rest } = options;
    const info: ActorInfo = {
      ...rest,
      actorId: newId("actor"),
      concurrencyGroups: {},
      isOrdered: options.maxConcurrency === 1,
      maxPendingCalls: -1,
      owner: this.caller.id,
      isDetached: false,
      retryExceptions: false,
    };
    void this.directory.answers.register({
      info,
      key: { name: info.className, moduleUrl: "file:///simulated.ts", exportName: info.className },
      name: undefined,
      namespace: undefined,
      getIfExists: false,
      creator: undefined,
      maxRestarts,
      restartIntensity: undefined,
      demand: makeDemand({ CPU: 1 }, { CPU: 1 }),
      isolation: undefined,
      threadName: undefined,
      runtimeEnv: undefined,
    });
    this.caller.starts.prepare(info.actorId, [], {
      start: (args, begun) => {
        this.directory.answers.start(info.actorId, args);
        begun();
      },
      fail: () => undefined,
    });
    return { info, handle: this.caller.handles.weak(info) };
  }

  actor(actorId: string): Supervisor | undefined {
    return this.directory.actors().find(({ spec }) => spec.info.actorId === actorId);
  }

  async close(): Promise<void> {
    const cause: DeathCause = { kind: "shutdown", message: "the runtime was shut down" };
    this.#joined.close();
    this.directory.end(cause);
    this.caller.end(cause);
    await this.#launcher.close(cause);
  }
}
