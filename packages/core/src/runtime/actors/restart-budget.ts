/** How often an actor may live again; how soon is restart-pause.ts. */
import type { ActorSpec } from "../../rpc/directory.ts";
import { clockMs } from "../../shared/clock.ts";
import type { DeathCause } from "../../shared/errors.ts";

const none: readonly number[] = [];

export class RestartBudget {
  readonly #intensity: ActorSpec["restartIntensity"];
  #restartsLeft: number;
  /** Times of restarts, by clockMs(), within the window of the restart intensity. */
  #restarts: readonly number[] = none;

  constructor({ maxRestarts, restartIntensity }: ActorSpec) {
    this.#restartsLeft = maxRestarts;
    this.#intensity = restartIntensity;
  }

  get isSpent(): boolean {
    return this.#restartsLeft === 0;
  }

  spend(): void {
    this.#restartsLeft -= 1;
  }

  /** Counts a death. Returns the cause of the end if that was one too many within the window. */
  diesTooOften(cause: DeathCause): DeathCause | undefined {
    const limit = this.#intensity;
    if (limit === undefined) return undefined;
    const now = clockMs();
    this.#restarts = [...this.#restarts.filter((at) => now - at < limit.withinMs), now];
    if (this.#restarts.length <= limit.restarts) return undefined;
    return {
      ...cause,
      kind: "restart-intensity",
      message: `it died ${this.#restarts.length} times within ${limit.withinMs} ms, at last because ${cause.message}`,
    };
  }
}
