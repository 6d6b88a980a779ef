/** Reads what was thrown, which may be anything. */

/** Returns the thrown error, or an error that shows the thrown value. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** Returns the code of an error of Node or of the system, such as "ENOENT". */
export function codeOf(thrown: unknown): string | undefined {
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
  return typeof code === "string" ? code : undefined;
}
