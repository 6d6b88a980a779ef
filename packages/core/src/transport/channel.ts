/**
 * The contract between two runtimes, whatever transport lies between them.
 *
 * Batches arrive in order and at most once. `closed` resolves once, with the reason; after that
 * `send` throws and the receiver is never called. A channel does not look inside a batch.
 */
import type { Batch } from "../protocol/message.ts";
import type { DeathCause } from "../shared/errors.ts";
import { asError } from "../shared/errors/thrown.ts";

/** Returns the memory for the data of a part, of exactly that size. */
export type PlaceOfPart = (id: number, size: number) => Uint8Array;

export interface Channel {
  /** @throws RaySystemError when closed */
  send(batch: Batch): void;
  /** Sets the one receiver; earlier batches wait for it. */
  onMessage(receiver: (batch: Batch) => void): void;
  /**
   * Returns batches that have arrived without waiting for the end of the turn, for code that holds
   * the thread; the receiver is not called for them. A channel without it delivers at the end of
   * the turn only.
   */
  readonly poll?: () => readonly Batch[];
  /**
   * Sets the destination of arriving parts. Only a channel that copies its data has this method and
   * carries parts; both ends are of one kind. `place` throws for a part that nobody waits for, and
   * the channel ends.
   */
  readonly takeParts?: (place: PlaceOfPart) => void;
  /** False as soon as this side knows that nothing it sends will arrive. */
  readonly isOpen: boolean;
  readonly closed: Promise<DeathCause>;
  /**
   * Resolves when the end of this side can no longer lose sent data, or when no peer is left to
   * read it.
   */
  drained(): Promise<void>;
  /**
   * Sends everything at once, for a runtime that is ending (transport/drain.ts). Gives up on a peer
   * that does not read.
   *
   * @param until the deadline for peers that do not read, by clockMs()
   */
  drainNow(until?: number): void;
  /**
   * Polls the channel and returns whether the peer has everything. Only channels that know this
   * have the method. Other batches that arrive are dropped.
   */
  readonly isHeardNow?: () => boolean;
  /**
   * A number for each of the first calls, by id, in memory that both sides share
   * (`rpc/session/claims.ts`): of those that this side sends, and of those that it receives.
   * Undefined until the side that receives them has offered the memory.
   */
  readonly sentClaims?: Int32Array | undefined;
  readonly receivedClaims?: Int32Array | undefined;
  /** Ends both sides. Idempotent: the first reason stays. */
  close(reason: DeathCause): void;
}

/** The cause of a channel that ends because the peer could not read its data. */
export const unreadByPeer: DeathCause = {
  kind: "channel-broken",
  message: "the other side could not read what was sent",
};

/** Returns the cause of a channel that ends itself because it received a malformed batch. */
export function brokenChannel(error: unknown): DeathCause {
  const cause = asError(error);
  return {
    kind: "channel-broken",
    message: `its messages cannot be read: ${cause.message}`,
    error: cause,
  };
}
