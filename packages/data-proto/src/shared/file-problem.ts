/** Facts of a failed read or write of a file, for the errors of each format. */

/** Returns the message of a caught value. */
export function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** Returns whether the cause is that the file is not there. */
export function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}
