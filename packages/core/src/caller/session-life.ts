/** Whether the session of a runtime goes on; all parts of the runtime share one. */
import { type DeathCause, SessionEndedError } from "../shared/errors.ts";

export class SessionLife {
  #ended: DeathCause | undefined = undefined;

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  end(reason: DeathCause): void {
    this.#ended ??= reason;
  }

  /** @throws SessionEndedError when the session that `what` belongs to has ended */
  check(what: string = "this handle"): void {
    if (this.#ended === undefined) return;
    throw new SessionEndedError(
      `${what} belongs to a session that has ended (${this.#ended.message})`,
    );
  }
}
