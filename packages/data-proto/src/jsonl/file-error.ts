/**
 * Turns a failure of node:fs into a JsonlError that names the path. Only this module reads system
 * error codes.
 */
import { JsonlError } from "../errors.ts";

export function fileError(path: string, cause: unknown): JsonlError {
  if (cause instanceof JsonlError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  const isMissing = cause instanceof Error && "code" in cause && cause.code === "ENOENT";
  return new JsonlError(isMissing ? "JSONL_NOT_FOUND" : "JSONL_IO", { path, reason, cause });
}
