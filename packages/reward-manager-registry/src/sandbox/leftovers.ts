/**
 * Ends processes that a program left behind when no namespace ends them and no filter prevents
 * them: a variable in their environment identifies them, wherever they moved. Only Linux shows
 * environments. A process that changes its own environment is not found.
 */

import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { codeOf } from "../values/caught.ts";

const name = "RAYLING_PROGRAM";
/**
 * Each round ends the processes that the one before did not see. A program that starts processes
 * faster than they are ended stays.
 */
const mostRounds = 50;

/** Makes a variable for the environment of one run. */
export type Mark = Readonly<Record<string, string>>;

export function newMark(): Mark {
  return { [name]: randomUUID() };
}

/** Ends every process with the mark. Resolves to the number of rounds beyond the first look. */
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
        // The process belongs to another user, or is gone meanwhile.
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
    if (!["ESRCH", "EPERM"].includes(codeOf(error) ?? "")) throw error;
  }
}
