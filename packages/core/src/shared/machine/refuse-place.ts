/**
 * Refuses places where this package cannot start workers: a bundle that contains it, and runtimes
 * that are not Node. The error says what to do, before a worker fails to start.
 */
import { RaySystemError } from "../errors.ts";
import { bundledInto } from "../own-files.ts";
import { insideBundle } from "./inside-bundle.ts";

/** @throws RaySystemError */
export function refusePlace(): void {
  refuseRuntime();
  const bundle = bundledInto();
  if (bundle !== undefined) {
    throw new RaySystemError(insideBundle(bundle));
  }
}

/** @throws RaySystemError in a runtime that is not Node */
export function refuseRuntime(): void {
  const { bun, deno } = process.versions;
  if (bun !== undefined) throw new RaySystemError(notNode(`Bun ${bun}`));
  if (deno !== undefined) throw new RaySystemError(notNode(`Deno ${deno}`));
}

/**
 * Tried with Bun 1.4.5 and Deno 2.9.6: their worker threads do not report which module calls while
 * it loads, or do not let a process be renamed.
 */
function notNode(what: string): string {
  return `rayling runs on Node, and this is ${what}: its workers do not start there. Run the program with node (22.18 or later)`;
}
