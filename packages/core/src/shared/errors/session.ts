/**
 * Errors of the session itself: it is not started, it is misused, or it has ended.
 */
import { RayError } from "./base.ts";

/** The runtime is not started, or is misused in a way that no other class names. Code "SYSTEM". */
export class RaySystemError extends RayError {
  constructor(message: string, options?: ErrorOptions) {
    super("SYSTEM", message, options);
  }
}

/**
 * The session has ended: `shutdown` was called, or, in an actor or task, the driver is gone. Code
 * "SESSION_ENDED".
 *
 * Everything that is pending when a session ends rejects with this error: waits, calls, streams and
 * queries. The use of a ref or handle afterwards throws it. One `catch` separates the end of a
 * program from its failures.
 */
export class SessionEndedError extends RaySystemError {
  override readonly code: string = "SESSION_ENDED";
}
