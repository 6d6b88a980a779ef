/** What must be true of every run, whatever the network did: what calls were made, what ran for them, and how they were answered. */
import type { Random } from "./random.ts";

export type Kind = "plain" | "slow" | "flaky" | "stream" | "big" | "relay" | "behind";

export interface Told {
  readonly id: number;
  readonly kind: Kind;
  /** By which runtime it was called: the driver, or a life of an actor. */
  readonly caller: string;
  readonly actor: string;
  /** The callee runs calls of one caller in their order. */
  readonly isOrdered: boolean;
  /** How often it may run again because its host was lost. */
  readonly retries: number;
  /** How often it throws, and is tried again, before it succeeds. */
  readonly throws: number;
  /** In which life each of its runs was. */
  readonly runs: string[];
  /** Its caller left it at once: it may run, or may not have begun by then. */
  isLeft?: boolean;
  /** The value that the call must return, if it succeeds. */
  expected: unknown;
  outcome:
    | { readonly ok: true; readonly value: unknown }
    | { readonly ok: false; readonly error: Error }
    | undefined;
}

export class Model {
  readonly calls: Told[] = [];
  readonly problems: string[] = [];
  /** Generators that run, by life and call. */
  readonly streams: Map<string, { readonly call: number; readonly host: string; ends: number }> =
    new Map();
  /** Of each life and caller of an ordered actor: the last call that began there for the first time. */
  readonly #lastBegun: Map<string, number> = new Map();

  problem(text: string): void {
    if (this.problems.length < 20) this.problems.push(text);
  }

  tell(call: Omit<Told, "id" | "runs" | "outcome">): Told {
    const told: Told = { ...call, id: this.calls.length, runs: [], outcome: undefined };
    this.calls.push(told);
    return told;
  }

  /** @param life of the actor that runs it */
  began(id: number, life: string): Told {
    const call = this.calls[id];
    if (call === undefined) throw new Error(`nobody called ${id}`);
    const isFirst = call.runs.length === 0;
    call.runs.push(life);
    const most = 1 + (call.retries < 0 ? Infinity : call.retries) + call.throws;
    if (call.runs.length > most) {
      this.problem(`${name(call)} ran ${call.runs.length} times: ${call.runs.join(", ")}`);
    }
    if (call.isOrdered && isFirst && call.throws === 0) {
      const key = `${life} ${call.caller}`;
      const last = this.#lastBegun.get(key) ?? -1;
      if (last > id) this.problem(`${name(call)} began after ${last}, which was called later`);
      this.#lastBegun.set(key, id);
    }
    return call;
  }

  answered(call: Told, outcome: NonNullable<Told["outcome"]>): void {
    if (call.outcome !== undefined) this.problem(`${name(call)} was answered twice`);
    call.outcome = outcome;
  }

  /** Whether a host that lives waits for an answer. */
  isAwaited(isAlive: (host: string) => boolean): boolean {
    return this.calls.some(
      ({ outcome, caller }) => outcome === undefined && caller !== "driver" && isAlive(caller),
    );
  }

  /**
   * @param isWhole nothing was to be lost: the network was never away for too long, and nobody died
   * @param isAlive whether that host lives: who has ended waits for nothing
   */
  check(isWhole: boolean, isAlive: (host: string) => boolean): void {
    for (const call of this.calls) {
      const { outcome, runs } = call;
      if (outcome === undefined && call.caller !== "driver" && !isAlive(call.caller)) continue;
      if (outcome === undefined) {
        this.problem(`${name(call)} was never answered; it ran ${runs.length} times`);
      } else if (outcome.ok) {
        if (JSON.stringify(outcome.value) !== JSON.stringify(call.expected)) {
          this.problem(
            `${name(call)} gave ${JSON.stringify(outcome.value)}, not ${JSON.stringify(call.expected)}`,
          );
        }
        if (runs.length === 0 && call.isLeft !== true) {
          this.problem(`${name(call)} was answered and never ran`);
        }
      } else {
        if (isWhole)
          this.problem(`${name(call)} failed: ${outcome.error.name}: ${outcome.error.message}`);
        if (!mayFailWith.has(outcome.error.name)) {
          this.problem(`${name(call)} failed with ${outcome.error.stack ?? outcome.error.message}`);
        }
      }
      const hasBegun = runs.length > 0 || call.isLeft !== true;
      if (isWhole && hasBegun && runs.length !== 1 + call.throws) {
        this.problem(`${name(call)} ran ${runs.length} times, not ${1 + call.throws}`);
      }
    }
  }

  /** @param isAlive whether that host lives */
  checkStreams(isAlive: (host: string) => boolean): void {
    for (const { call, host, ends } of this.streams.values()) {
      if (ends > 1) this.problem(`the generator of call ${call} ended ${ends} times`);
      if (ends === 0 && isAlive(host))
        this.problem(
          `the generator of call ${call} runs on, and nobody is there to take its items`,
        );
    }
  }
}

function name(call: Told): string {
  return `call ${call.id} (${call.kind} of ${call.actor} by ${call.caller})`;
}

/** What a call may be told when its host was lost. */
const mayFailWith: ReadonlySet<string> = new Set([
  "ActorDiedError",
  "ActorUnavailableError",
  "ObjectLostError",
  "ObjectReconstructionFailedError",
  "OwnerDiedError",
  // It was lost so often that it was not tried again when it threw.
  "FlakyError",
]);

/** A big value that says which call made it. */
export function bigValue(id: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 997) bytes[at] = (id + at) % 251;
  return bytes;
}

/** What is seen of it: comparing all of it each time would take long. */
export function digest(bytes: Uint8Array): string {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 997)
    sum = (sum * 31 + (bytes[at] as number)) % 1_000_003;
  return `${bytes.length}:${sum}`;
}

export function sizeFrom(random: Random): number {
  return random.pick([10_000, 70_000, 150_000, 1024 * 1024]);
}
