/** Errors of the session itself: it is not started, it is misused, or it has ended. */
import { RayError } from "./base.ts";

/** The runtime is not started, or was misused in a way no other class names. */
export class RaySystemError extends RayError {
  constructor(message: string, options?: ErrorOptions) {
    super("SYSTEM", message, options);
  }
}

/**
 * The session has ended: `shutdown` was called, or, in an actor or task, the driver is gone. Code "SESSION_ENDED".
 *
 * Everything that the end of a session settles rejects with it: waits, calls, streams and questions that were pending, and the use of a ref or a handle
 * afterwards. One `catch` tells the end of a program from its failures.
 */
export class SessionEndedError extends RaySystemError {
  override readonly code: string = "SESSION_ENDED";
}
