/**
 * Processes that a program left behind where no namespace ends with it and no filter keeps it from starting any: they are found by a variable of their environment, wherever they went.
 * Linux says what is in environments; elsewhere nobody does. A process that changes its own environment is not found.
 */

import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";

const name = "RAYLING_PROGRAM";
/** Each round ends what the one before has not seen. What starts processes faster than it is ended stays. */
const mostRounds = 50;

/** A variable for the environment of one run. */
export type Mark = Readonly<Record<string, string>>;

export function newMark(): Mark {
  return { [name]: randomUUID() };
}

/** Ends every process that has the mark. Resolves to how many rounds that took beyond the first look. */
export async function endMarked(mark: Mark): Promise<number> {
  const wanted = `${name}=${mark[name] ?? ""}`;
  for (let round = 0; round < mostRounds; round++) {
    // oxlint-disable-next-line no-await-in-loop -- one round after the other
    const found = await processesWith(wanted);
    if (found.length === 0) return round;
    for (const pid of found) end(pid);
  }
  return mostRounds;
}

async function processesWith(variable: string): Promise<number[]> {
  const names = await readdir("/proc").catch(() => []);
  const found = await Promise.all(
    names
      .filter((one) => /^\d+$/.test(one))
      .map(async (one) => {
        // Of others, or gone meanwhile.
        const environment = await readFile(`/proc/${one}/environ`, "utf8").catch(() => "");
        return environment.split("\0").includes(variable) ? [Number(one)] : [];
      }),
  );
  return found.flat().filter((pid) => pid !== process.pid);
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["ESRCH", "EPERM"].includes(code)) throw error;
  }
}
