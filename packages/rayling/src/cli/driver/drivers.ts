/**
 * Selects the driver of a command, the running or the chosen one, and holds the connection to it.
 */
import { basename, dirname, resolve } from "node:path";
import type { DriverAbout, DriverClient, FoundDriver } from "@rayling/core/control";
import { CliError } from "../cli-error.ts";
import { duration } from "../output/numbers.ts";
import { tell } from "../output/output.ts";
import { tableLines } from "../output/table.ts";

export interface DriverChoice {
  /** A job id, a driver id, or the path of a control socket. */
  readonly address?: string;
  readonly pid?: number;
}

type Running = Exclude<FoundDriver, { readonly state: "gone" }>;

/**
 * Rejects with CliError 1 when there is no driver or it does not answer, and with CliError 2 when
 * there are several and none was chosen.
 *
 * @param useSilent handles a driver that does not answer, in place of a rejection
 */
export async function withDriver<T>(
  choice: DriverChoice,
  use: (driver: DriverClient) => Promise<T>,
  useSilent?: (about: DriverAbout) => Promise<T>,
): Promise<T> {
  // The connection holds no process; this timer does, until the answer is there.
  const alive = setInterval(() => undefined, 2 ** 30);
  try {
    const found = await driversOf(choice, (about) => fits(about, choice));
    try {
      const driver = chosen(found, choice);
      if (driver.state === "answers") return await use(driver.client);
      if (useSilent === undefined) throw driver.error;
      return await useSilent(driver.about);
    } finally {
      for (const one of found) if (one.state === "answers") one.client.close();
    }
  } finally {
    clearInterval(alive);
  }
}

/** Whether a driver listens on its socket; the files of a dead one are removed. */
export async function isRunning({ jobId }: DriverAbout, choice: DriverChoice): Promise<boolean> {
  const found = await driversOf(choice, (about) => about.jobId === jobId);
  for (const one of found) if (one.state === "answers") one.client.close();
  return found.some(({ state }) => state !== "gone");
}

/** Loads the client of drivers, which other commands do without, and finds drivers by it. */
async function driversOf(
  { address }: DriverChoice,
  isWanted: (about: DriverAbout) => boolean,
): Promise<readonly FoundDriver[]> {
  const { controlDirectory, findDrivers } = await import("@rayling/core/control");
  const isPath = address?.includes("/") === true;
  return findDrivers(isPath ? dirname(resolve(address)) : controlDirectory(), isWanted);
}

function chosen(found: readonly FoundDriver[], choice: DriverChoice): Running {
  const running = found.filter((one) => one.state !== "gone");
  const [first, ...others] = running;
  if (first === undefined) throw new CliError(1, noneText(found, choice));
  if (others.length === 0) return first;
  tell(`${listLines(running).join("\n")}\n`);
  throw new CliError(
    2,
    `${running.length} drivers are running: choose one with --pid or --address`,
  );
}

function fits({ jobId, driverId, pid }: DriverAbout, choice: DriverChoice): boolean {
  const { address } = choice;
  const name = address?.includes("/") === true ? basename(address, ".sock") : address;
  return (
    (name === undefined || name === jobId || name === driverId) &&
    (choice.pid === undefined || choice.pid === pid)
  );
}

function noneText(gone: readonly FoundDriver[], { address, pid }: DriverChoice): string {
  if (gone.length > 0) {
    return gone
      .map(({ about }) => `the driver ${about.pid} (${about.script}) is not running any more`)
      .join("; ");
  }
  if (address === undefined && pid === undefined) {
    return "no driver is running: a program is one from its ray.init() on";
  }
  const wanted = [address ?? [], pid === undefined ? [] : `pid ${pid}`].flat().join(", ");
  return `no driver is known as ${wanted}`;
}

function listLines(running: readonly Running[]): readonly string[] {
  const rows = running.map(({ about: { pid, jobId, script, startTimeMs }, state }) => ({
    pid,
    address: jobId,
    "running for": duration(Math.max(0, Date.now() - startTimeMs)),
    script: state === "silent" ? `${script} (does not answer)` : script,
  }));
  return tableLines(rows, ["pid", "address", "running for", "script"]);
}
