/** Actors that this runtime creates: their constructors' arguments, until they are ready. */
import type { Encoded } from "../../protocol/codec.ts";
import type { Directory, StartArguments } from "../../rpc/directory.ts";
import type { DeathCause } from "../../shared/errors.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import type { Objects } from "../objects/objects.ts";
import type { Values } from "../values.ts";
import { type CallArguments, encodeArguments } from "./call-arguments.ts";
import type { Companions } from "./call-arguments.ts";

export interface StartsParts {
  readonly directory: Directory;
  readonly values: Values;
  readonly objects: Objects;
}

/** The next step when the arguments of a constructor are ready, or one has failed. */
export interface StartSteps {
  /** Call `begun` when the actor has begun. */
  readonly start: (args: StartArguments, begun: () => void) => void;
  readonly fail: (cause: DeathCause) => void;
}

export class Starts {
  readonly #parts: StartsParts;
  /** By actor: entries that its constructor waits for. */
  readonly #waiting: Map<string, readonly ObjectEntry[]> = new Map();

  constructor(parts: StartsParts) {
    this.#parts = parts;
  }

  /** Encodes constructor arguments now; they are handed to `start` when the refs are ready. */
  prepare(actorId: string, args: readonly unknown[], steps: StartSteps): void {
    const encoded = encodeArguments(this.#parts.values.codec, args);
    const { dependencies } = encoded;
    if (dependencies.length === 0) return this.#settle(actorId, encoded, steps);
    let unresolved = dependencies.length;
    this.#waiting.set(actorId, dependencies);
    for (const entry of dependencies) {
      entry.watch(() => {
        unresolved -= 1;
        if (unresolved > 0) return;
        this.#waiting.delete(actorId);
        this.#settle(actorId, encoded, steps);
      });
    }
  }

  /** Arguments that the constructor of an actor waits for. */
  missingFor(actorId: string): readonly ObjectEntry[] {
    return this.#waiting.get(actorId) ?? [];
  }

  #settle(actorId: string, encoded: CallArguments, steps: StartSteps): void {
    const { values, objects } = this.#parts;
    const { signals } = encoded;
    const again = (): void => this.#settle(actorId, encoded, steps);
    if (objects.bringingHere(encoded.dependencies, again)) return;
    const dependencies: Encoded[] = [];
    for (const { outcome } of encoded.dependencies) {
      if (outcome?.ok === false) {
        const error = values.revive(outcome.failure);
        const message = `a constructor argument failed: ${error.message}`;
        return steps.fail({ kind: "init-failed", message, error });
      }
      if (outcome?.value !== undefined) dependencies.push(outcome.value);
    }
    if (signals !== undefined) dependencies.push(...signals.states());
    steps.start({ values: encoded.values, dependencies }, () => {
      if (signals !== undefined) this.#connect(actorId, signals);
    });
  }

  /** Signals of a constructor are the actor's as long as it lives. */
  #connect(actorId: string, signals: Companions): void {
    const { directory } = this.#parts;
    signals.listen((index, reason) => directory.abortSignal(actorId, index, reason));
    directory.actorEnded(actorId).then(
      () => signals.end(),
      // A directory that does not answer ends with this runtime.
      () => signals.end(),
    );
  }
}
