/**
 * Cleans up after a driver that is gone, for whatever reason: it ends its host processes, even in
 * an endless loop, and removes its folder of sockets.
 *
 * A shell reads the list of processes from the driver. Its input ends when the driver does, even if
 * the driver is killed, and then it ends the remaining processes. (On Windows the system itself
 * ends child processes.)
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "node:net";
import { warn } from "../../shared/text/warning.ts";

/**
 * A path to a unix socket has at most 103 characters (macOS; Linux has 107); the names inside the
 * folder have 21.
 */
const maxFolder = 80;

const script = `
trap "" INT TERM HUP
pids=" "
while read -r change pid; do
  case $change in
    +) pids="$pids$pid " ;;
    -) pids="\${pids%% $pid *} \${pids#* $pid }" ;;
  esac
done
for pid in $pids; do kill -s KILL -- "-$pid" 2>/dev/null; done
rm -rf -- "$1"
`;

export class Guard {
  /** The folder for sockets of host processes; only this user may enter it. */
  readonly folder: string;
  readonly #shell: ChildProcess | undefined;

  constructor() {
    const parent = tmpdir().length > maxFolder ? "/tmp" : tmpdir();
    this.folder = mkdtempSync(join(parent, "rayling-"));
    if (process.platform === "win32") return;
    // The shell has a session of its own, because signals of the driver's terminal are not meant
    // for it.
    this.#shell = spawn("/bin/sh", ["-c", script, "rayling-guard", this.folder], {
      cwd: "/",
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    // Without a shell, processes still notice the end of their driver, unless they are too busy.
    this.#shell.on("error", (error) => warn(error));
    this.#shell.stdin?.on("error", () => undefined);
    this.#shell.unref();
    (this.#shell.stdin as Socket | null)?.unref();
  }

  watch(pid: number): void {
    this.#shell?.stdin?.write(`+ ${pid}\n`);
  }

  forget(pid: number): void {
    this.#shell?.stdin?.write(`- ${pid}\n`);
  }

  /** Ends the shell. The processes must be gone. */
  async close(): Promise<void> {
    const shell = this.#shell;
    if (shell?.pid !== undefined && shell.exitCode === null && shell.signalCode === null) {
      const ended = once(shell, "exit");
      shell.ref();
      shell.stdin?.end();
      await ended;
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}
