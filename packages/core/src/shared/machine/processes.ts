/** Other processes of this machine, by their ids. */
import { codeOf } from "../errors/thrown.ts";

/** A process of another user, which may not be asked, runs as well. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}
