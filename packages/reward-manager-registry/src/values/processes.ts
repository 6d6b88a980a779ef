/** Other processes, by their ids. */

import { codeOf } from "./caught.ts";

/** Returns whether the process runs; one of another user, which may not be asked, does. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** Kills all processes of the group that this process leads. */
export function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // The group is empty, or (EPERM, while the kernel still has their names) none of its processes
    // runs.
    if (!["ESRCH", "EPERM"].includes(codeOf(error) ?? "")) throw error;
  }
}
