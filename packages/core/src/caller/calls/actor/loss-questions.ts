/** Asks the directory how lives of one actor ended. */
import type { ActorLoss, Directory } from "../../../rpc/directory.ts";
import type { DeathCause } from "../../../shared/errors.ts";
import { outOfReachMs } from "../../objects/ask-owner.ts";
import { timers } from "../../../shared/machine/timers.ts";

export class LossQuestions {
  readonly #directory: Directory;
  readonly #actorId: string;
  /** The last question, which may have no answer for long. */
  #asked: { readonly incarnation: number; readonly loss: Promise<ActorLoss> } | undefined;

  constructor(directory: Directory, actorId: string) {
    this.#directory = directory;
    this.#actorId = actorId;
  }

  /** The prospect of calls to that life, after they were lost for `reason`. */
  async lossOf(incarnation: number, reason: DeathCause | undefined): Promise<ActorLoss> {
    // Nothing goes on after the session, and nobody is left to ask.
    if (reason?.kind === "shutdown") return { restarting: false, cause: reason };
    // Only the connection broke; the actor may well live, and a new connection is made.
    if (reason?.kind === "channel-broken") return { restarting: true, cause: reason };
    if (reason?.kind !== "unreachable") return this.#reported(incarnation);
    // The actor may be unreachable from here alone, and the directory may reach it all the time.
    return (await this.#soon(incarnation)) ?? { restarting: true, cause: reason };
  }

  /** Whether that life ends within the time that it takes to hear of it. */
  async endsSoon(incarnation: number): Promise<boolean> {
    return (await this.#soon(incarnation)) !== undefined;
  }

  /** Undefined when the answer takes too long. */
  async #soon(incarnation: number): Promise<ActorLoss | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = timers.setTimeout(() => resolve(undefined), outOfReachMs).unref();
    try {
      return await Promise.race([this.#reported(incarnation), late]);
    } finally {
      timers.clearTimeout(timer);
    }
  }

  /** The directory's answer, which may never come. */
  #reported(incarnation: number): Promise<ActorLoss> {
    if (this.#asked?.incarnation !== incarnation) {
      const loss = this.#directory
        .loss(this.#actorId, incarnation)
        .catch((error: unknown): ActorLoss => {
          const cause: DeathCause = { kind: "unreachable", message: String(error) };
          return { restarting: false, cause };
        });
      this.#asked = { incarnation, loss };
    }
    return this.#asked.loss;
  }
}
