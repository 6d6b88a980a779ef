/**
 * The actors of a session, both living and recently dead, and their names. A name is free again
 * when its actor is dead, or about to die.
 */
import type { ActorSpec, Creator, Registration, StartArguments } from "../../rpc/directory.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { Fifo } from "../../shared/fifo.ts";
import { Supervisor, type SupervisorParts } from "./supervisor.ts";

export class ActorRegistry {
  readonly #namespace: string;
  readonly #parts: SupervisorParts;
  readonly #actors: Map<string, Supervisor> = new Map();
  readonly #names: Map<string, string> = new Map();
  readonly #dead: Fifo<Supervisor> = new Fifo();
  /** Ids that hosts gave to handles before they learned that the actor exists. */
  readonly #aliases: Map<string, string> = new Map();
  /** Living actors, by the actor that created them in its current incarnation. */
  readonly #created: Map<string, Set<Supervisor>> = new Map();
  /** Registered actors without a start, by the host that will start them. */
  readonly #unstarted: Map<string, Set<Supervisor>> = new Map();

  constructor(namespace: string, parts: Omit<SupervisorParts, "onDead" | "onSharedEnd">) {
    this.#namespace = namespace;
    this.#parts = {
      ...parts,
      onDead: (actor) => this.#bury(actor),
      onSharedEnd: ({ spec: { info } }) => this.#creatorGone(info.actorId),
    };
  }

  /** @param owner the runtime that creates it */
  register(spec: ActorSpec, owner: string): Registration {
    const namespace = spec.namespace ?? this.#namespace;
    const { actorId } = spec.info;
    if (spec.name !== undefined) {
      const existing = this.named(spec.name, namespace);
      if (existing !== undefined) {
        return spec.getIfExists
          ? { state: "existing", info: existing.spec.info }
          : { state: "taken", name: spec.name, namespace };
      }
      this.#names.set(nameKey(spec.name, namespace), actorId);
    }
    const actor = new Supervisor(spec, namespace, owner, this.#parts);
    this.#actors.set(actorId, actor);
    const { creator } = spec;
    if (creator === undefined) return { state: "new" };
    const { actorId: by } = creator;
    // In a shared thread the code of a life that has ended may go on. A worker of Ray is dead by
    // then and creates nothing, so this ends detached actors, too.
    if (this.#hasEnded(creator)) {
      actor.abandon({ kind: "owner-died", message: `its owner ${by} died` });
    } else this.#created.set(by, (this.#created.get(by) ?? new Set()).add(actor));
    return { state: "new" };
  }

  /**
   * Registers an actor for a host: its handle has an id of its own, and may die before it starts
   * the actor.
   */
  registerFrom(hostId: string, spec: ActorSpec): Registration {
    const registration = this.register(spec, hostId);
    const { actorId } = spec.info;
    if (registration.state === "existing") {
      this.#aliases.set(actorId, registration.info.actorId);
    } else if (registration.state === "new") {
      const unstarted = this.#unstarted.get(hostId) ?? new Set();
      this.#unstarted.set(hostId, unstarted.add(this.get(actorId)));
    }
    return registration;
  }

  start(actorId: string, args: StartArguments): void {
    const actor = this.get(actorId);
    for (const unstarted of this.#unstarted.values()) unstarted.delete(actor);
    void actor.run(args);
  }

  /** Handles the end of a host, and of the actors that depended on it. */
  hostGone(hostId: string): void {
    for (const actor of this.#unstarted.get(hostId) ?? []) {
      actor.abandon({
        kind: "unreachable",
        message: "its creator died before the constructor arguments were ready",
      });
    }
    this.#unstarted.delete(hostId);
    for (const actor of this.#actors.values()) {
      if (actor.owner === hostId) actor.ownerDied(hostId);
    }
  }

  /** Whether that life is over: its actor is dead, perhaps forgotten, or has begun another one. */
  #hasEnded({ actorId, incarnation }: Creator): boolean {
    const record = this.#actors.get(actorId)?.record;
    return record === undefined || record.isDead || record.life.number !== incarnation;
  }

  #creatorGone(actorId: string): void {
    const created = this.#created.get(actorId) ?? [];
    this.#created.delete(actorId);
    for (const actor of created) actor.ownerDied(actorId);
  }

  outOfScope(actorId: string): void {
    // A handle of an existing actor (getIfExists) does not count, and neither does one of a
    // detached actor.
    if (this.#aliases.delete(actorId)) return;
    const actor = this.find(actorId);
    if (actor?.spec.info.isDetached === false) actor.outOfScope();
  }

  /** Returns the living actors, and the dead ones that are remembered. */
  all(): readonly Supervisor[] {
    return [...this.#actors.values()];
  }

  find(actorId: string): Supervisor | undefined {
    return this.#actors.get(this.#aliases.get(actorId) ?? actorId);
  }

  /** @throws RaySystemError when the actor is unknown */
  get(actorId: string): Supervisor {
    const actor = this.find(actorId);
    if (actor === undefined)
      throw new RaySystemError(`no actor ${actorId} is known here; its session may have ended`);
    return actor;
  }

  /** Returns the actor of that name, unless it is about to die. */
  named(name: string, namespace: string = this.#namespace): Supervisor | undefined {
    const actorId = this.#names.get(nameKey(name, namespace));
    const actor = actorId === undefined ? undefined : this.#actors.get(actorId);
    return actor?.isOver === false ? actor : undefined;
  }

  /** Returns the names that are taken. */
  names(allNamespaces: boolean): { readonly name: string; readonly namespace: string }[] {
    return this.all().flatMap(({ spec: { name }, namespace, isOver }) => {
      const isShown = !isOver && (allNamespaces || namespace === this.#namespace);
      return name !== undefined && isShown ? [{ name, namespace }] : [];
    });
  }

  ownsLiving(owner: string): boolean {
    return this.all().some((actor) => actor.owner === owner && !actor.record.isDead);
  }

  /** Ends every actor with the runtime. */
  end(cause: DeathCause): void {
    for (const actor of this.#actors.values()) actor.end(cause);
  }

  /** Keeps the record of a dead actor for a while, so that queries get the cause of its death. */
  #bury(actor: Supervisor): void {
    this.#dead.push(actor);
    const { creator } = actor.spec;
    const siblings = creator && this.#created.get(creator.actorId);
    siblings?.delete(actor);
    if (creator !== undefined && siblings?.size === 0) this.#created.delete(creator.actorId);
    if (this.#dead.size <= keptRecords) return;
    const oldest = this.#dead.shift();
    if (oldest === undefined) return;
    const { spec } = oldest;
    this.#actors.delete(spec.info.actorId);
    if (spec.name === undefined) return;
    const key = nameKey(spec.name, oldest.namespace);
    if (this.#names.get(key) === spec.info.actorId) this.#names.delete(key);
  }
}

/** The number of records of dead actors that are kept. */
const keptRecords = 1000;

export const forgotten: DeathCause = {
  kind: "unreachable",
  message: "it died so long ago that no record of it is kept",
};

function nameKey(name: string, namespace: string): string {
  return JSON.stringify([namespace, name]);
}
