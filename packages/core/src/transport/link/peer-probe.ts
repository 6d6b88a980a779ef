/**
 * How a dialler tells a machine that is gone from one that has no room for it.
 *
 * Systems take connections for a thread that computes, as many as there is room for, answer their probes, and say nothing to anybody else: that a
 * connection cannot be made for want of an answer proves nothing. One that is there and is not answered any more does, and so does a refusal.
 */
import { connect, type Socket } from "node:net";
import { RaySystemError } from "../../shared/errors.ts";
import { keepAlive, type Place } from "../address.ts";

/** The other side is not there, or the way to it is lost. */
export class PeerLostError extends RaySystemError {}

export interface Watch {
  /** Nothing is watched any more. */
  readonly isOver: boolean;
  /** Idempotent. */
  end(): void;
}

/** Calls back when the machine there cannot be reached any more. Its thread hears nothing of that. Does not keep the process alive. */
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
    // Nobody can be dialled, which the link hears.
    () => undefined,
  );
  return {
    get isOver() {
      return isOver;
    },
    end,
  };
}

/** Says nothing, so that the system probes it from the beginning. That it cannot be made for want of an answer proves nothing: too many may wait there. */
function bareConnection(place: Place, onLost: () => void): Socket {
  const socket = connect({ ...place, ...keepAlive }).unref();
  let isMade = false;
  socket.once("connect", () => (isMade = true));
  socket.on("error", (error) => {
    if (provesLoss(error, isMade)) onLost();
  });
  // Its end is only seen by who reads.
  return socket.resume();
}

/** What systems say when the connection cannot be made for reasons of this side, or of others that they do not know: there may be no room over there. */
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

/** What they say when the probes of a connection that is there are not answered. */
const unanswered: ReadonlySet<unknown> = new Set(["EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT"]);

/** Whether it says that nobody is there, or none can be reached. @param isMade the connection was there */
export function provesLoss({ code }: NodeJS.ErrnoException, isMade: boolean): boolean {
  return isMade ? unanswered.has(code) : !unclear.has(code);
}
