/** The resources of an actor's next incarnation: requested, waited for, or ready. */
import type { Allocation, Placement, ResourceRequest } from "../../placement/placement.ts";

import type { ActorSpec } from "../../rpc/directory.ts";
import { assertNever, type DeathCause } from "../../shared/errors.ts";

export class NextPlace {
  readonly #placement: Placement;
  readonly #spec: ActorSpec;
  #request: ResourceRequest | undefined;
  /** Resources that were placed ahead of the end of the current incarnation. */
  #ready: Allocation | undefined;

  constructor(placement: Placement, spec: ActorSpec) {
    this.#placement = placement;
    this.#spec = spec;
  }

  /** Why it waits for resources, if it does. */
  get waitsFor(): string | undefined {
    return this.#request?.reason;
  }

  /** Requests resources. */
  ask(): ResourceRequest {
    const { demand, info } = this.#spec;
    this.#request = this.#placement.request(demand, `actor ${info.className}`);
    return this.#request;
  }

  /** Has resources ready for the next incarnation. */
  keep(allocation: Allocation): void {
    this.#ready = allocation;
  }

  /**
   * Returns the resources, or the cause why there are none; undefined when the request was
   * withdrawn.
   */
  async take(): Promise<Allocation | DeathCause | undefined> {
    const ready = this.#ready;
    this.#ready = undefined;
    this.#request = undefined;
    if (ready?.isLost === false) return ready;
    ready?.release();
    const outcome = await this.ask().outcome;
    this.#request = undefined;
    switch (outcome.kind) {
      case "placed":
        return outcome.allocation;
      case "refused":
        return { kind: outcome.refusal, message: outcome.reason };
      case "withdrawn":
        return undefined;
      default:
        return assertNever(outcome);
    }
  }

  withdraw(): void {
    this.#request?.withdraw();
  }

  /** Nobody needs resources any more. */
  end(): void {
    this.withdraw();
    this.#ready?.release();
  }
}
