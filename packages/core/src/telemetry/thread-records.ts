/**
 * Which session the metrics belong to that the code of a driver's thread records: to the one that
 * is open, until it has ended; and what is recorded while there is none, to the next one.
 *
 * A session may begin while the one before still ends. It takes over from there.
 */
import { threadSlot } from "../shared/thread-slot.ts";
import { type MetricPart, threadMetrics } from "./metrics.ts";

/** The records of one session. */
export class ThreadRecords {
  readonly #add: (part: MetricPart) => void;

  /** @param add gets what was recorded since the last time */
  constructor(add: (part: MetricPart) => void) {
    this.#add = add;
  }

  /** From now on records are of this session. */
  begin(): void {
    const owner = ownerSlot();
    owner.current?.take();
    owner.current = this;
  }

  /** Hands over what was recorded, unless another session has begun. */
  take(): void {
    if (ownerSlot().current !== this) return;
    for (const part of threadMetrics().take()) this.#add(part);
  }

  /** From now on records are of the next session. */
  end(): void {
    this.take();
    const owner = ownerSlot();
    if (owner.current === this) owner.current = undefined;
  }
}

function ownerSlot(): { current: ThreadRecords | undefined } {
  return threadSlot("metrics-owner", () => ({ current: undefined }));
}
