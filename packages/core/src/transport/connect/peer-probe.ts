/**
 * Lets a dialler tell a machine that is gone from one that has no room for it.
 *
 * A system accepts connections for a busy thread up to its backlog, answers their probes, and
 * ignores further ones: a connection that gets no answer proves nothing. An established connection
 * whose probes get no answer does prove a loss, and so does a refusal.
 */
import { connect, type Socket } from "node:net";
import { RaySystemError } from "../../shared/errors.ts";
import { codeOf } from "../../shared/errors/thrown.ts";
import { keepAlive, type Place } from "../address.ts";
import { joinedLookup } from "./name-lookup.ts";

/** The peer is gone, or the network to it is lost. */
export class PeerLostError extends RaySystemError {}

export interface Watch {
  /** Whether the watch has ended. */
  readonly isOver: boolean;
  /** Idempotent. */
  end(): void;
}

/**
 * Calls back when the other machine can no longer be reached. The thread of the peer is not
 * involved. Does not keep the process alive.
 */
export function watchMachine(
  address: () => Promise<{ readonly place: Place }>,
  onLost: () => void,
): Watch {
  let isOver = false;
  let bare: Socket | undefined;
  const end = (): void => {
    isOver = true;
    bare?.destroy();
  };
  address().then(
    ({ place }) => {
      if (isOver) return;
      bare = bareConnection(place, onLost);
      bare.once("close", end);
    },
    // No address ever came; the link learns that itself.
    () => undefined,
  );
  return {
    get isOver() {
      return isOver;
    },
    end,
  };
}

/**
 * Opens a connection that sends nothing, so that the system probes it from the start. A connection
 * that gets no answer proves nothing: the backlog there may be full.
 */
function bareConnection(place: Place, onLost: () => void): Socket {
  const socket = connect({ ...place, lookup: joinedLookup, ...keepAlive }).unref();
  let isMade = false;
  socket.once("connect", () => (isMade = true));
  socket.on("error", (error) => {
    if (provesLoss(error, isMade)) onLost();
  });
  // Only a socket that reads sees its end.
  return socket.resume();
}

/**
 * Errors of a failed connection that prove nothing: the reason may be on this side, or the backlog
 * over there is full.
 */
const unclear: ReadonlySet<unknown> = new Set([
  undefined,
  "EADDRNOTAVAIL",
  "EAI_AGAIN",
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "ENOTFOUND",
  "ETIMEDOUT",
]);

/** Errors of an established connection whose probes get no answer. */
const unanswered: ReadonlySet<unknown> = new Set(["EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"]);

/**
 * Whether an error proves that nobody is there, or cannot be reached. Where a name has several
 * addresses, the failure of each must prove it.
 *
 * @param isMade whether the connection was established before it failed
 */
export function provesLoss(error: NodeJS.ErrnoException, isMade: boolean): boolean {
  if (isMade) return unanswered.has(error.code);
  const all: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  return all.every((one) => !unclear.has(codeOf(one)));
}
