/**
 * The places of actors: each in a host of its own, or among others in a shared thread.
 *
 * A node has at most one shared thread per CPU: one at first, and more when the existing ones hold
 * many actors; one for each name that actors give theirs, which ends with the last of them; and as
 * many for actors that inherit other settings. The end of one actor leaves the others in its
 * thread; the end of the thread ends all of them, each by its own policy. Starts and ends of one
 * turn travel as one message.
 */
import type { CreateRequest, CreateResult } from "../../host/host-control.ts";
import type { Isolation, RuntimeEnv } from "../../rpc/directory.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { type Host, HostLostError } from "../launch/host.ts";
import { kindOfInherited } from "../launch/inherited-env.ts";
import type { Launcher } from "../launch/launcher.ts";
import { present } from "../../shared/errors/internal.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface SlotRequest {
  readonly nodeId: string;
  readonly isolation: Isolation;
  /** The name of the shared thread, if it is one with a name. */
  readonly threadName: string | undefined;
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The settings of its creator's code: actors that inherit the same may share a thread. */
  readonly inherited: RuntimeEnv | undefined;
  readonly variables: Readonly<Record<string, string>> | undefined;
  readonly moduleUrl: string;
}

/** The place of one incarnation of an actor. */
export interface ActorSlot {
  readonly host: Host;
  /** Resolves with the cause when the incarnation ends. */
  readonly ended: Promise<DeathCause>;
  /**
   * Resolves when nothing of it is left there, which may be after its end; undefined when both
   * coincide.
   */
  readonly gone?: Promise<void>;
  /** Loads its class and makes it. Rejects with HostLostError. */
  create(request: CreateRequest): Promise<CreateResult>;
  /** Ends it now; the first cause counts. */
  end(cause: DeathCause): Promise<void>;
  /** Handles its own end: its messages may leave, and its place is free. */
  leave(cause: DeathCause): Promise<void>;
}

/** From this many actors in a thread on, another thread starts, if the limit allows one. */
const manyActors = 100;

export class ActorSlots {
  readonly #launcher: () => Launcher;
  readonly #maxSharedHosts: (nodeId: string) => number;
  /**
   * Shared threads without names, by node; those with inherited settings by node and settings. They
   * end with the last of their actors.
   */
  readonly #shared: Map<string, SharedHost[]> = new Map();
  /** Shared threads with names, by node, settings and name. */
  readonly #named: Map<string, SharedHost> = new Map();

  constructor(launcher: () => Launcher, maxSharedHosts: (nodeId: string) => number) {
    this.#launcher = launcher;
    this.#maxSharedHosts = maxSharedHosts;
  }

  /**
   * @param isWanted called again when a host is there; if it returns false, the result is undefined
   */
  async take(
    { isolation, threadName, ...request }: SlotRequest,
    isWanted: () => boolean,
  ): Promise<ActorSlot | undefined> {
    if (isolation === "shared") return new SharedSlot(this.#sharedFor(request, threadName));
    const host = await this.#launcher().take({ ...request, isolation }, isWanted);
    return host === undefined ? undefined : ownSlot(host);
  }

  /** Ends the empty shared threads of a draining node. */
  endEmptyOn(nodeId: string, cause: DeathCause): void {
    for (const { host, population } of this.#shared.get(nodeId) ?? []) {
      if (population === 0) void host.stop(cause).catch(() => undefined);
    }
  }

  #sharedFor(
    { nodeId, inherited, moduleUrl }: Omit<SlotRequest, "isolation" | "threadName">,
    threadName: string | undefined,
  ): SharedHost {
    const wish = { nodeId, inherited, moduleUrl };
    const kind = inherited === undefined ? undefined : kindOfInherited(inherited, moduleUrl);
    if (threadName !== undefined) {
      return this.#namedShared(JSON.stringify([nodeId, threadName, kind]), wish);
    }
    return this.#leastShared(kind === undefined ? nodeId : JSON.stringify([nodeId, kind]), wish);
  }

  #namedShared(key: string, wish: SharedWish): SharedHost {
    const existing = this.#named.get(key);
    if (existing?.isOpen === true) return existing;
    const shared = new SharedHost(this.#startShared(wish), true);
    this.#named.set(key, shared);
    void shared.host.exited.then(() => {
      if (this.#named.get(key) === shared) this.#named.delete(key);
    });
    return shared;
  }

  #startShared(wish: SharedWish): Host {
    return this.#launcher().takeNow({ ...wish, isolation: "thread", runtimeEnv: undefined });
  }

  /** Returns the shared host without a name that has the fewest actors. */
  #leastShared(key: string, wish: SharedWish): SharedHost {
    const hosts = this.#shared.get(key) ?? [];
    let least: SharedHost | undefined;
    for (const one of hosts) {
      if (one.isOpen && (least === undefined || one.population < least.population)) {
        least = one;
      }
    }
    const isEnough = least !== undefined && least.population < manyActors;
    if (least !== undefined && (isEnough || hosts.length >= this.#maxSharedHosts(wish.nodeId))) {
      return least;
    }
    const shared = new SharedHost(this.#startShared(wish), wish.inherited !== undefined);
    this.#shared.set(key, [...hosts, shared]);
    void shared.host.exited.then(() => {
      const rest = (this.#shared.get(key) ?? []).filter((one) => one !== shared);
      if (rest.length > 0) this.#shared.set(key, rest);
      else this.#shared.delete(key);
    });
    return shared;
  }
}

/** Where a shared thread is to start, and with which settings. */
type SharedWish = Pick<SlotRequest, "nodeId" | "inherited" | "moduleUrl">;

function ownSlot(host: Host): ActorSlot {
  return {
    host,
    ended: host.exited,
    async create(request) {
      const [result] = await host.control<readonly CreateResult[]>((control) =>
        control.create([request]),
      );
      return present(result, "result of a creation");
    },
    end: (cause) => host.terminate(cause),
    leave: (cause) => host.stop(cause),
  };
}

/** An actor that is to be made in a shared thread. */
interface Creation {
  readonly request: CreateRequest;
  readonly resolve: (result: CreateResult) => void;
  readonly reject: (error: unknown) => void;
}

/** This many actors are made before calls have their turn. */
const maxAtOnce = 500;

/**
 * A thread that does not confirm an ended actor within this time, in ms, is probably blocked by it,
 * and is ended.
 */
const discardMs = 5000;

class SharedHost {
  readonly host: Host;
  readonly #endsWithLast: boolean;
  /** The last actor has left, and the thread ends. */
  #isSpent = false;
  readonly #slots: Set<SharedSlot> = new Set();
  #creations: Map<string, Creation> = new Map();
  #discards: string[] = [];
  #discarded: PromiseWithResolvers<void> = Promise.withResolvers();
  #isScheduled = false;

  /** @param endsWithLast whether the thread is of no use without actors */
  constructor(host: Host, endsWithLast: boolean) {
    this.host = host;
    this.#endsWithLast = endsWithLast;
    void host.exited.then((cause) => {
      const count = this.#slots.size;
      const shared: DeathCause =
        count > 1
          ? { ...cause, message: `${cause.message}; ${count} actors shared the thread` }
          : cause;
      for (const slot of this.#slots) {
        slot.resolveEnded(shared);
        slot.resolveGone();
      }
      this.#slots.clear();
      for (const { reject } of this.#creations.values()) {
        reject(new HostLostError(host.id, shared));
      }
      this.#creations.clear();
    });
  }

  get population(): number {
    return this.#slots.size;
  }

  /** Whether actors may enter. */
  get isOpen(): boolean {
    return !this.#isSpent && this.host.channel.isOpen;
  }

  /** Whether the last actor has left, which ends the thread. */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  enter(slot: SharedSlot): void {
    this.#slots.add(slot);
  }

  leave(slot: SharedSlot): void {
    this.#slots.delete(slot);
    if (this.#endsWithLast && this.#slots.size === 0) this.#isSpent = true;
  }

  create(request: CreateRequest): Promise<CreateResult> {
    return new Promise((resolve, reject) => {
      this.#creations.set(request.target, { request, resolve, reject });
      this.#schedule();
    });
  }

  /** Resolves when the thread has dropped the actor, or has ended. */
  async discard(target: string): Promise<void> {
    const creation = this.#creations.get(target);
    if (creation !== undefined) {
      this.#creations.delete(target);
      // Nobody waits for the creation any more.
      creation.resolve({ ok: true });
      return;
    }
    this.#discards.push(target);
    this.#schedule();
    await this.#discarded.promise;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    timers.setImmediate(() => this.#send());
  }

  #send(): void {
    this.#isScheduled = false;
    // Ends go first, so that the next incarnation of an actor finds its place free.
    if (this.#discards.length > 0) void this.#sendDiscards();
    const byModule = new Map<string, Creation[]>();
    for (const creation of this.#creations.values()) {
      const { moduleUrl } = creation.request.key;
      const last = byModule.get(moduleUrl);
      if (last === undefined || last.length === maxAtOnce) {
        if (last !== undefined) void this.#sendCreations(last);
        byModule.set(moduleUrl, [creation]);
      } else {
        last.push(creation);
      }
    }
    this.#creations = new Map();
    for (const creations of byModule.values()) void this.#sendCreations(creations);
  }

  async #sendDiscards(): Promise<void> {
    const targets = this.#discards;
    const { resolve } = this.#discarded;
    this.#discards = [];
    this.#discarded = Promise.withResolvers();
    const timer = timers.setTimeout(() => {
      const cause: DeathCause = {
        kind: "killed",
        message: `its shared worker thread did not let go of an actor that was ended, and was ended itself`,
      };
      void this.host.terminate(cause);
    }, discardMs);
    try {
      await this.host.control<void>((control) => control.discard(targets));
    } catch (error) {
      // They are gone with the thread.
      if (!(error instanceof HostLostError)) throw error;
    } finally {
      timers.clearTimeout(timer);
      resolve();
    }
  }

  async #sendCreations(creations: readonly Creation[]): Promise<void> {
    try {
      const results = await this.host.control<readonly CreateResult[]>((control) =>
        control.create(creations.map(({ request }) => request)),
      );
      for (const [index, { resolve }] of creations.entries()) {
        resolve(present(results[index], "result of a creation"));
      }
    } catch (error) {
      for (const { reject } of creations) reject(error);
    }
  }
}

class SharedSlot implements ActorSlot {
  readonly ended: Promise<DeathCause>;
  readonly resolveEnded: (cause: DeathCause) => void;
  readonly gone: Promise<void>;
  readonly resolveGone: () => void;
  readonly #shared: SharedHost;
  #target: string | undefined;
  #abandon: ((error: Error) => void) | undefined;

  constructor(shared: SharedHost) {
    this.#shared = shared;
    const { promise, resolve } = Promise.withResolvers<DeathCause>();
    this.ended = promise;
    this.resolveEnded = resolve;
    const gone = Promise.withResolvers<void>();
    this.gone = gone.promise;
    this.resolveGone = gone.resolve;
    shared.enter(this);
  }

  get host(): Host {
    return this.#shared.host;
  }

  create(request: CreateRequest): Promise<CreateResult> {
    this.#target = request.target;
    const created = new Promise<CreateResult>((resolve, reject) => {
      // Its module may never finish loading.
      this.#abandon = reject;
      this.#shared.create(request).then(resolve, reject);
    });
    return created.finally(() => (this.#abandon = undefined));
  }

  async end(cause: DeathCause): Promise<void> {
    this.#end(cause);
    try {
      if (this.#shared.isSpent) await this.host.terminate(cause);
      else if (this.#target !== undefined) await this.#shared.discard(this.#target);
    } finally {
      this.resolveGone();
    }
  }

  async leave(cause: DeathCause): Promise<void> {
    this.#shared.leave(this);
    try {
      // The last one has ended when its messages have left with the thread.
      if (this.#shared.isSpent) await this.host.stop(cause);
    } finally {
      this.#end(cause);
      this.resolveGone();
    }
  }

  #end(cause: DeathCause): void {
    this.resolveEnded(cause);
    this.#abandon?.(new HostLostError(this.host.id, cause));
    this.#shared.leave(this);
  }
}
