/**
 * The actors of a host: the running ones, and those that are being created.
 */
import type { Remote } from "comlink";
import type { Caller } from "../../caller/caller.ts";
import { type CauseData, causeFromData, causeToData } from "../../protocol/death-cause-data.ts";
import type { Encoded } from "../../protocol/codec.ts";
import { targetOf, totalConcurrency } from "../../rpc/directory.ts";
import type { RemoteKey } from "../../rpc/remote-key.ts";
import { type DeathCause, RemoteNotRegisteredError } from "../../shared/errors.ts";
import { type Constructor, isClass } from "../../shared/methods.ts";
import type {
  CreateRequest,
  CreateResult,
  DriverControl,
  FailedCreation,
  HostStats,
} from "../host-control.ts";
import type { Idleness } from "./idleness.ts";
import { type ActorHome, Instance } from "./actor/instance.ts";
import type { FindFunction } from "./actor/actor-object.ts";
import { sharedInfo } from "./actor/shared-info.ts";
import { decodeArguments } from "./arguments.ts";
import type { Loader } from "../code/loader.ts";
import { countSignals } from "./received-signals.ts";
import { findFunction } from "./task-runner.ts";

export interface HostedActorsParts {
  readonly caller: Caller;
  readonly driver: Remote<DriverControl>;
  readonly idleness: Idleness;
  /** Finds the classes of actors. */
  readonly loader: Pick<Loader, "find">;
}

export class HostedActors implements ActorHome {
  readonly #parts: HostedActorsParts;
  readonly #instances: Map<string, Instance> = new Map();
  readonly #creating: Set<string> = new Set();

  readonly caller: Caller;
  readonly idleness: Idleness;
  readonly findFunction: FindFunction;
  isShared = false;

  constructor(parts: HostedActorsParts) {
    this.#parts = parts;
    this.caller = parts.caller;
    this.idleness = parts.idleness;
    this.findFunction = (key) => findFunction(parts.loader, key);
  }

  exiting({ info, incarnation }: Instance, cause: DeathCause): void {
    // A driver that cannot be reached is ending, and this host with it.
    void this.#parts.driver
      .exiting(info.actorId, incarnation, causeToData(cause))
      .catch(() => undefined);
  }

  exited({ info, incarnation }: Instance, cause: DeathCause): void {
    this.#instances.delete(targetOf(info.actorId, incarnation));
    void this.#parts.driver
      .exited(info.actorId, incarnation, causeToData(cause))
      .catch(() => undefined);
  }

  get size(): number {
    return this.#instances.size;
  }

  get(target: string): Instance | undefined {
    return this.#instances.get(target);
  }

  /** Returns how many calls an actor runs at once; undefined when it is not here. */
  concurrencyOf(target: string): number | undefined {
    const info = this.#instances.get(target)?.info;
    return info === undefined ? undefined : totalConcurrency(info);
  }

  async create(requests: readonly CreateRequest[]): Promise<readonly CreateResult[]> {
    for (const { target } of requests) this.#creating.add(target);
    return Promise.all(requests.map((request) => this.#create(request)));
  }

  async #create(request: CreateRequest): Promise<CreateResult> {
    const { caller, idleness, loader } = this.#parts;
    const { target, key, args } = request;
    const decline = (): void => {
      for (const value of [args.values, ...args.dependencies]) caller.values.decline(value);
    };
    idleness.look();
    let ActorClass: Constructor;
    try {
      ActorClass = await findClass(loader, key);
    } catch (error) {
      this.#creating.delete(target);
      decline();
      const isUnknown = error instanceof RemoteNotRegisteredError;
      return this.#failed(isUnknown ? "not-registered" : "load-failed", error);
    }
    // The actor was ended while its module loaded.
    if (!this.#creating.delete(target)) {
      decline();
      return { ok: true };
    }
    try {
      this.#instances.set(target, this.#constructed(request, ActorClass));
      return { ok: true };
    } catch (error) {
      decline();
      return this.#failed("init-failed", error);
    }
  }

  #constructed(request: CreateRequest, ActorClass: Constructor): Instance {
    const { info, name, namespace, incarnation, assignment, args } = request;
    this.isShared = request.isShared;
    const { dependencies } = args;
    const signalCount = countSignals(dependencies);
    const instance = new Instance(this, {
      info: sharedInfo(info),
      name,
      namespace,
      incarnation,
      assignment,
      signalCount,
    });
    const given = { arguments: args.values, dependencies };
    try {
      instance.object.construct(
        ActorClass,
        decodeArguments(this.caller.values.codec, given, () => instance.signals),
      );
      return instance;
    } catch (error) {
      instance.object.ended({ kind: "init-failed", message: "its constructor threw" });
      throw error;
    }
  }

  #failed(kind: FailedCreation["kind"], error: unknown): CreateResult {
    const failure = this.#parts.caller.values.describe(error);
    return { ok: false, kind, failure };
  }

  /** Aborts a signal among the arguments of a constructor. */
  abortSignal(target: string, index: number, reason: Encoded): void {
    const instance = this.#instances.get(target);
    if (instance === undefined) this.#parts.caller.values.decline(reason);
    else instance.signals.aborted(index, reason);
  }

  /**
   * Ends an actor: queued calls are answered, and the hook runs when the running calls have ended.
   */
  terminate(target: string, cause: CauseData): void {
    this.#instances.get(target)?.exit(causeFromData(cause));
  }

  /** Drops actors at once, whatever they do. */
  discard(targets: readonly string[]): void {
    for (const target of targets) {
      this.#creating.delete(target);
      this.#instances.get(target)?.discard();
      this.#instances.delete(target);
    }
    this.#parts.caller.sessions.flush();
  }

  stats(): HostStats["actors"] {
    return [...this.#instances.values()].map((instance) => ({
      actorId: instance.info.actorId,
      className: instance.info.className,
      ...instance.groups.load,
      executed: instance.executed,
    }));
  }
}

/** Returns the class of a key. Rejects when there is none. */
async function findClass(loader: Pick<Loader, "find">, key: RemoteKey): Promise<Constructor> {
  const found = await loader.find(key);
  if (isClass(found)) return found;
  throw new RemoteNotRegisteredError(key.name, key.moduleUrl, "it is no class");
}
