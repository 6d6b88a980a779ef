/**
 * Sees to it that nothing is left of a driver that is gone, however it went: its host processes, those in an endless loop too, and its folder of sockets.
 *
 * A shell reads from the driver which processes there are. Its input ends when the driver does, killed or not, and then it ends what is left. (On Windows
 * the system itself ends the children of a process.)
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "node:net";
import { warn } from "../../shared/text/warning.ts";

/** A path to a unix socket has at most 103 characters (macOS; Linux has 107); the names inside the folder have 21. */
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
  /** For sockets of host processes; nobody else may look inside. */
  readonly folder: string;
  readonly #shell: ChildProcess | undefined;

  constructor() {
    const parent = tmpdir().length > maxFolder ? "/tmp" : tmpdir();
    this.folder = mkdtempSync(join(parent, "rayling-"));
    if (process.platform === "win32") return;
    // In a session of its own: what a terminal sends to the driver is not meant for it.
    this.#shell = spawn("/bin/sh", ["-c", script, "rayling-guard", this.folder], {
      cwd: "/",
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    // Without a shell, processes still notice that their driver is gone, unless they are too busy to look.
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

  /** Call it when the processes are gone. */
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
