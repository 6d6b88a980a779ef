/** Errors of the system that pass, as room is made: no machine lacks anything for good by them. */

import { codeOf } from "../values/caught.ts";

const passing: readonly unknown[] =
  "EAGAIN EDQUOT EIO EMFILE ENFILE ENOMEM ENOSPC EROFS ETXTBSY".split(" ");

/** Whether the error is one of them. */
export function isPassing(error: unknown): boolean {
  return passing.includes(codeOf(error));
}
