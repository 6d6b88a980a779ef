/**
 * The record of an actor: its state, its incarnation and the cause of its last end. Its supervisor
 * writes it; those who ask for the actor wait for its changes.
 */
import type { ActorLocation, ActorLoss } from "../../rpc/directory.ts";
import type { DeathCause } from "../../shared/errors.ts";
import type { Incarnation } from "./incarnation.ts";

export type ActorState = "registered" | "pending" | "alive" | "restarting" | "dead";

export class ActorRecord {
  /** The current incarnation, or the last one. */
  life: Incarnation;
  /** The cause of its death, or of its last restart. */
  cause: DeathCause | undefined;
  #state: ActorState = "registered";
  #waiters: (() => void)[] | undefined;

  constructor(first: Incarnation) {
    this.life = first;
  }

  get state(): ActorState {
    return this.#state;
  }

  get isDead(): boolean {
    return this.#state === "dead";
  }

  set(state: ActorState): void {
    this.#state = state;
    const waiters = this.#waiters;
    this.#waiters = undefined;
    for (const waiter of waiters ?? []) waiter();
  }

  /** Resolves when the state is set again. */
  changed(): Promise<void> {
    return new Promise((resolve) => (this.#waiters ??= []).push(resolve));
  }

  /** Resolves when the actor is dead for good. */
  async ended(): Promise<void> {
    while (!this.isDead) await this.changed();
  }

  /** Resolves when the actor lives, or is dead. */
  async located(): Promise<ActorLocation> {
    for (;;) {
      if (this.#state === "dead") return { state: "dead", cause: this.cause ?? noCause };
      const { host, target, number } = this.life;
      if (this.#state === "alive" && host !== undefined) {
        return { state: "alive", target, hostId: host.id, incarnation: number };
      }
      await this.changed();
    }
  }

  /** Resolves when that incarnation has ended. */
  async loss(incarnation: number): Promise<ActorLoss> {
    while (this.#state === "alive" && this.life.number === incarnation) await this.changed();
    return { restarting: this.#state !== "dead", cause: this.cause ?? noCause };
  }
}

export const noCause: DeathCause = { kind: "unreachable", message: "no cause is known" };
