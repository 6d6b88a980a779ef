/**
 * Chooses the isolation: the strongest permitted one that works on this machine. An isolation works
 * if a program runs in it; a sandbox remembers the result.
 */

import { SandboxResourceError } from "../../errors.ts";
import { bubblewrap } from "./bubblewrap.ts";
import { isolations } from "./isolation.ts";
import type { Isolation, SandboxIsolation } from "./isolation.ts";
import { namespaces } from "./namespaces.ts";
import { filteredProcess, landlock, plainProcess } from "./without-namespaces.ts";
import { messageOf } from "../../values/caught.ts";

/** The isolation of a sandbox on this machine, and why no stronger one is used. */
export interface SandboxReport {
  /** Undefined: no permitted isolation works, and no program runs. */
  readonly isolation: SandboxIsolation | undefined;
  /**
   * Whether the kernel refuses system calls that programs do not need: new processes, sockets,
   * memory that no limit counts. JavaScript programs have this under bubblewrap, or if there is a
   * python3.
   */
  readonly filtersSystemCalls: boolean;
  /** Stronger permitted isolations, and the problem with each. */
  readonly missing: readonly { readonly isolation: SandboxIsolation; readonly problem: string }[];
}

const isolationsFor: Readonly<Record<SandboxIsolation, readonly Isolation[]>> = {
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
 * Tries one isolation after the other. Rejects with SandboxResourceError where an attempt fails for
 * what the machine lacks at the moment: a weaker isolation would stay when that is over.
 *
 * @param attempt runs a program in it; rejects with the problem
 */
export async function chooseIsolation(
  permitted: readonly SandboxIsolation[],
  attempt: (isolation: Isolation) => Promise<void>,
): Promise<Choice> {
  const missing: { isolation: SandboxIsolation; problem: string }[] = [];
  for (const one of isolations
    .filter((name) => permitted.includes(name))
    .flatMap((name) => isolationsFor[name])) {
    // oxlint-disable-next-line no-await-in-loop -- the first that is there ends it
    const problem = await problemOf(attempt(one));
    if (problem === undefined) {
      const filtersSystemCalls = one !== plainProcess && hasFilter(one);
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
    (error: unknown) => {
      if (error instanceof SandboxResourceError) throw error;
      return messageOf(error);
    },
  );
}

/** Whether programs of Python set the filter of system calls themselves. */
export function hasFilter(isolation: Isolation): boolean {
  const { filter } = isolation.confinement(isolation.places("/"), [], "python");
  return filter !== undefined;
}
