/** Errors of the runtime's own making, which no use of it can cause. */
import { RaySystemError } from "./session.ts";

/**
 * Returns a value that must be there.
 *
 * @param what names it, for the error
 * @throws RaySystemError when it is not
 */
export function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new RaySystemError(`internal error: there is no ${what}`);
  return value;
}
