/**
 * `rayling stop`: ends a driver and everything that it runs.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { DriverAbout, DriverClient } from "@rayling/core/control";
import { codeOf } from "@rayling/reward-manager-registry/values";
import { CliError } from "../cli-error.ts";
import { count } from "../flag-values.ts";
import { isRunning, withDriver } from "./drivers.ts";
import { print } from "../output/formats.ts";
import { plain } from "../output/output.ts";
import { driverCommand, type DriverFlags } from "../session-flags.ts";

export interface StopFlags extends DriverFlags {
  readonly force?: true;
  readonly gracePeriod: number;
}

const answerMs = 5000;

/** The time that a killed process has to go, and the interval of checks, in ms. */
const killedMs = 5000;
const lookEveryMs = 50;

/** Adds `rayling stop`. */
export function addStopCommand(program: Command): void {
  driverCommand(program, "stop")
    .summary("end a running driver with all that it runs")
    .description(
      "Shuts the driver's runtime down, so that what is pending rejects and nothing is left of it, and ends its process as SIGTERM would.",
    )
    .option("--force", "kill the process if it has not ended by then")
    .option("--grace-period <ms>", "how long it may take", count(1), 30_000)
    .action(stopDriver);
}

export async function stopDriver(flags: StopFlags): Promise<void> {
  await withDriver(
    flags,
    async (driver) => {
      if (await endsInOrder(driver, flags)) await tell(driver.about, "ended", flags);
      else await kill(driver.about, flags);
    },
    // It does not answer, and still holds its socket.
    flags.force === true ? (about) => kill(about, flags) : undefined,
  );
}

/**
 * Resolves with whether the driver ended. The connection ends with the process, not with the
 * session.
 */
async function endsInOrder(
  driver: DriverClient,
  { force, gracePeriod: graceMs }: StopFlags,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  void driver.closed.then(() => resolve(true));
  const timer = setTimeout(() => resolve(false), graceMs);
  try {
    await Promise.race([driver.ask("stop", [], answerMs), promise]);
    return await promise;
  } catch (error) {
    // It ended before its answer.
    if (codeOf(error) === "DRIVER_GONE") return true;
    // It is not asked again.
    if (codeOf(error) === "DRIVER_SILENT" && force === true) return false;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Kills the driver. Its socket has a listener, so the process exists and has this id. */
async function kill(
  about: DriverAbout,
  { force, gracePeriod, ...choice }: StopFlags,
): Promise<void> {
  const late = `the driver ${about.pid} (${about.script}) has not ended within ${gracePeriod} ms`;
  if (force !== true) {
    // Without a session it is no driver any more, which another command would find.
    const kills = (await isRunning(about, choice))
      ? "--force kills it"
      : `its session has ended, and its process goes on; kill -KILL ${about.pid} ends it`;
    throw new CliError(1, `${late}: ${kills}`);
  }
  if (!sendKill(about.pid)) {
    if (!(await isRunning(about, choice))) return tell(about, "ended", choice);
    throw new CliError(
      1,
      `${late}, and cannot be killed: it runs in another container, or as another user`,
    );
  }
  for (const until = performance.now() + killedMs; await isRunning(about, choice);) {
    if (performance.now() > until) throw new CliError(1, `${late}, nor after it was killed`);
    await delay(lookEveryMs);
  }
  await tell(about, "killed", choice);
}

/** Returns whether there was a process to kill. */
function sendKill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    // It ended by itself meanwhile; or the id belongs to another user's process, when the driver is
    // in another container.
    if (["ESRCH", "EPERM"].includes(String(codeOf(error)))) return false;
    throw error;
  }
}

async function tell(
  { pid, jobId, script }: DriverAbout,
  end: "ended" | "killed",
  { format = "table" }: Pick<DriverFlags, "format">,
): Promise<void> {
  const what = end === "ended" ? "has ended" : "was killed";
  await print({ pid, jobId, script, end }, format, () => [
    `the driver ${pid} (${plain(script)}) ${what}`,
  ]);
}
