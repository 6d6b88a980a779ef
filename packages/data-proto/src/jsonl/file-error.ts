/**
 * Turns a failure of node:fs into a JsonlError that names the path. Only this module reads system
 * error codes.
 */
import { JsonlError } from "../errors.ts";
import { isMissing, reasonOf } from "../shared/file-problem.ts";

export function fileError(path: string, cause: unknown): JsonlError {
  if (cause instanceof JsonlError) return cause;
  const reason = reasonOf(cause);
  return new JsonlError(isMissing(cause) ? "JSONL_NOT_FOUND" : "JSONL_IO", { path, reason, cause });
}

/** Rejects with the JsonlError of what failed. */
export async function ofFile<Value>(path: string, work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (cause) {
    throw fileError(path, cause);
  }
}
