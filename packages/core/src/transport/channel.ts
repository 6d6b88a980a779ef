/**
 * The contract between two runtimes, whatever lies between them.
 *
 * Batches arrive in order and at most once. `closed` resolves once, with the reason, and after that `send` throws and the
 * receiver is never called. A channel does not look inside a batch.
 */
import type { Batch } from "../protocol/message.ts";
import type { DeathCause } from "../shared/errors.ts";

/** The place for the data of a part, of exactly that size. */
export type PlaceOfPart = (id: number, size: number) => Uint8Array;

export interface Channel {
  /** @throws RaySystemError when closed */
  send(batch: Batch): void;
  /** Sets the one receiver; batches that came before wait for it. */
  onMessage(receiver: (batch: Batch) => void): void;
  /**
   * Takes in what has arrived without waiting for the turn's end, for code that holds the thread; the receiver is not called for it.
   * Without it, messages are seen at the end of the turn only.
   */
  readonly poll?: () => readonly Batch[];
  /**
   * Says where the data of parts goes that arrive. Only a channel that copies what it carries has it, and carries parts; both ends are of one kind.
   * `place` throws for a part that nobody waits for, and the channel ends.
   */
  readonly takeParts?: (place: PlaceOfPart) => void;
  /** False from the moment it is known that nothing sent would arrive. */
  readonly isOpen: boolean;
  readonly closed: Promise<DeathCause>;
  /** Resolves when what was sent cannot be lost by the end of this side any more, or nobody is there to read it. */
  drained(): Promise<void>;
  /**
   * What was sent leaves at once, for a runtime that is ending (transport/drain.ts). Gives up on a peer that reads nothing.
   *
   * @param until by performance.now(): then the time for those who read nothing is over
   */
  drainNow(until?: number): void;
  /** Looks what has arrived, and says whether the other side has all. Only a channel has it on which that is known. What else arrives is for nobody any more. */
  readonly isHeardNow?: () => boolean;
  /** Ends both sides. Idempotent: the first reason stays. */
  close(reason: DeathCause): void;
}

/** Why a channel ends itself: what arrived is no batch. */
export function brokenChannel(error: unknown): DeathCause {
  const cause = error instanceof Error ? error : new Error(String(error));
  return {
    kind: "channel-broken",
    message: `its messages cannot be read: ${cause.message}`,
    error: cause,
  };
}
