/**
 * Which way of isolation is used: the strongest of those that are permitted and that this machine has. A way is there if a program runs in it; what that says is kept for one sandbox.
 */

import { bubblewrap } from "./bubblewrap.ts";
import { isolations } from "./isolation.ts";
import type { Isolation, SandboxIsolation } from "./isolation.ts";
import { namespaces } from "./namespaces.ts";
import { filteredProcess, landlock, plainProcess } from "./unboxed.ts";

/** What a sandbox uses on this machine, and why nothing stronger. */
export interface SandboxReport {
  /** Undefined: none of those that are permitted; nothing is run. */
  readonly isolation: SandboxIsolation | undefined;
  /**
   * Whether the kernel refuses system calls that programs do without: new processes, sockets, memory that no limit counts. Programs of JavaScript have that by bubblewrap, or where there
   * is a python3.
   */
  readonly filtersSystemCalls: boolean;
  /** Stronger ways that are permitted, and what came of trying them. */
  readonly missing: readonly { readonly isolation: SandboxIsolation; readonly problem: string }[];
}

const ways: Readonly<Record<SandboxIsolation, readonly Isolation[]>> = {
  bubblewrap: [bubblewrap],
  namespaces: [namespaces],
  landlock: [landlock],
  process: [filteredProcess, plainProcess],
};

export interface Choice {
  readonly isolation: Isolation | undefined;
  readonly report: SandboxReport;
}

/**
 * Tries one after the other.
 *
 * @param attempt runs a program in it; rejects with what is wrong
 */
export async function chooseIsolation(
  permitted: readonly SandboxIsolation[],
  attempt: (isolation: Isolation) => Promise<void>,
): Promise<Choice> {
  const missing: { isolation: SandboxIsolation; problem: string }[] = [];
  for (const one of isolations
    .filter((name) => permitted.includes(name))
    .flatMap((name) => ways[name])) {
    // What nothing has to be there for is not tried.
    // oxlint-disable-next-line no-await-in-loop -- the first that is there ends it
    const problem = one === plainProcess ? undefined : await problemOf(attempt(one));
    if (problem === undefined) {
      const filtersSystemCalls = one !== plainProcess && (one === bubblewrap || hasFilter(one));
      return { isolation: one, report: { isolation: one.name, filtersSystemCalls, missing } };
    }
    missing.push({ isolation: one.name, problem });
  }
  const report = { isolation: undefined, filtersSystemCalls: false, missing };
  return { isolation: undefined, report };
}

function problemOf(attempt: Promise<void>): Promise<string | undefined> {
  return attempt.then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

function hasFilter(isolation: Isolation): boolean {
  const { filter } = isolation.confinement(isolation.places("/"), []);
  return filter !== undefined;
}
