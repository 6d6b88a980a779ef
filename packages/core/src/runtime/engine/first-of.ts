/** One request for resources that was made in several places: the first one with room counts. */
import type { Outcome, ResourceRequest } from "../../placement/placement.ts";

export class FirstOf implements ResourceRequest {
  readonly outcome: Promise<Outcome>;
  readonly #settled: PromiseWithResolvers<Outcome> = Promise.withResolvers();
  readonly #asked: Set<ResourceRequest> = new Set();
  readonly #beforeAll: string;
  #isOver = false;

  /** @param beforeAll why it waits before it is made anywhere */
  constructor(beforeAll: string) {
    this.outcome = this.#settled.promise;
    this.#beforeAll = beforeAll;
  }

  get reason(): string | undefined {
    if (this.#isOver) return undefined;
    if (this.#asked.size === 0) return this.#beforeAll;
    // A request that has found room waits only for its machine.
    const reasons = [...this.#asked].map((one) => one.reason);
    return reasons.every((one) => one !== undefined) ? reasons.at(-1) : undefined;
  }

  /** Makes the request in one more place, unless it is over. */
  ask(make: () => ResourceRequest): void {
    if (this.#isOver) return;
    const request = make();
    this.#asked.add(request);
    request.outcome.then(
      (outcome) => this.#take(request, outcome),
      (error: Error) => this.fail(error),
    );
  }

  withdraw(): void {
    this.#end();
    this.#settled.resolve({ kind: "withdrawn" });
  }

  /** Ends it with the error. */
  fail(error: Error): void {
    this.#end();
    this.#settled.reject(error);
  }

  #take(request: ResourceRequest, outcome: Outcome): void {
    this.#asked.delete(request);
    if (this.#isOver) {
      if (outcome.kind === "placed") outcome.allocation.release();
      return;
    }
    // Another place may have what this one refuses.
    if (outcome.kind !== "placed" && this.#asked.size > 0) return;
    this.#end();
    this.#settled.resolve(outcome);
  }

  #end(): void {
    this.#isOver = true;
    for (const request of this.#asked) request.withdraw();
  }
}
