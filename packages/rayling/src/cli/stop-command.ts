/** `rayling stop`: a driver and all that it runs come to their end. */
import { setTimeout as delay } from "node:timers/promises";
import {
  type DriverAbout,
  type DriverClient,
  DriverGoneError,
  DriverSilentError,
} from "@rayling/core/control";
import { CliError } from "./cli-error.ts";
import { type DriverChoice, isRunning, withDriver } from "./drivers.ts";
import { plain, say } from "./output.ts";

export interface StopFlags extends DriverChoice {
  readonly force?: true;
  readonly gracePeriod: number;
}

const answerMs = 5000;

/** What a killed process has to be gone, and how often that is looked at. */
const killedMs = 5000;
const lookEveryMs = 50;

export async function stopDriver(flags: StopFlags): Promise<void> {
  await withDriver(
    flags,
    async (driver) => {
      if (await endsInOrder(driver, flags)) tell(driver.about, "has ended");
      else await kill(driver.about, flags);
    },
    // It hears nothing, and holds its socket all the same.
    flags.force === true ? (about) => kill(about, flags) : undefined,
  );
}

/** Resolves with whether it did. The connection ends with the process, not with the session. */
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
    // It ended before it had answered.
    if (error instanceof DriverGoneError) return true;
    // It is not asked for an answer again.
    if (error instanceof DriverSilentError && force === true) return false;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Somebody listens on its socket, so the process is there and its number is its own. */
async function kill(
  about: DriverAbout,
  { force, gracePeriod, ...choice }: StopFlags,
): Promise<void> {
  const late = `the driver ${about.pid} (${about.script}) was told to end and has not done so for ${gracePeriod} ms`;
  if (force !== true) throw new CliError(1, `${late}: --force kills it`);
  if (!sendKill(about.pid)) {
    if (!(await isRunning(about, choice))) return tell(about, "has ended");
    throw new CliError(
      1,
      `${late}, and cannot be killed: it runs in another container, or as another user`,
    );
  }
  for (const until = performance.now() + killedMs; await isRunning(about, choice);) {
    if (performance.now() > until) throw new CliError(1, `${late}, nor since it was killed`);
    await delay(lookEveryMs);
  }
  tell(about, "was killed");
}

/** Returns whether there was one to kill. */
function sendKill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    // It ended by itself meanwhile; or the number is somebody else's, of another user even, where the driver's own is of another container.
    if (["ESRCH", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

function tell({ pid, script }: DriverAbout, what: string): void {
  say(`the driver ${pid} (${plain(script)}) ${what}\n`);
}
