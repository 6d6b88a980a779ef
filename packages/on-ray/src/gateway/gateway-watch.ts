/**
 * Finds out that a gateway stands still: its process or machine is frozen, or the network is gone.
 * The kernel of a frozen process goes on answering, so the gateway itself is asked.
 */
import { type Deadline, deadline } from "@rayling/core/cluster";

/** The parts of a client that its watch needs. */
export interface Watched {
  readonly socket: {
    readonly bytesRead: number;
    /** The bytes that wait to be sent. */
    readonly writableLength: number;
  };
  /** How long the gateway may send nothing, in ms. */
  readonly timeoutMs: number;
  /** Asks the gateway for an answer. */
  readonly ping: () => Promise<unknown>;
  readonly onSilent: () => void;
}

/** The looks within the time that a gateway may send nothing. */
const looks = 2;

/** The slowest upload that a request gets the time for, in bytes per ms. */
const slowest = 256;

/** Calls `onSilent` when nothing has come for the time. Returns how to end the watch. */
export function watchGateway({ socket, timeoutMs, ping, onSilent }: Watched): () => void {
  const periodMs = timeoutMs / looks;
  let running: Deadline | undefined;
  let isAsked = false;
  let seenBytes = -1;
  let silentMs = 0;
  let allowedMs = timeoutMs;
  const look = (): void => {
    if (socket.bytesRead === seenBytes) silentMs += periodMs;
    else {
      seenBytes = socket.bytesRead;
      silentMs = 0;
      // A question waits behind what is being sent.
      allowedMs = timeoutMs + socket.writableLength / slowest;
    }
    if (silentMs >= allowedMs) return onSilent();
    if (!isAsked) {
      isAsked = true;
      const answered = (): void => void (isAsked = false);
      ping().then(answered, answered);
    }
    running = deadline(periodMs, look);
  };
  look();
  return () => running?.end();
}
