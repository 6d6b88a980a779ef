/**
 * The client side of the control socket: it finds the drivers of this user, and queries them.
 *
 * The socket alone shows whether a driver lives: nobody listens there when its process is gone,
 * even if another process has its id. Every query ends: with an answer, with the end of the driver,
 * or with a timeout.
 */
import { wrap } from "comlink";
import type { DriverAbout, DriverCommands } from "../../rpc/commands.ts";
import { clockMs } from "../../shared/clock.ts";
import {
  AuthenticationError,
  type DeathCause,
  ProtocolVersionError,
  RayError,
} from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import type { Channel } from "../../transport/channel.ts";
import { dial } from "../../transport/link/dial.ts";
import { channelEndpoint } from "../../transport/endpoint.ts";
import { handshakeMs } from "../../transport/connect/handshake.ts";
import { type FoundRecord, readRecords, removeFiles } from "./control-files.ts";
import { codeOf } from "../../shared/errors/thrown.ts";
import { isRunning } from "../../shared/machine/processes.ts";
import { timers } from "../../shared/machine/timers.ts";

/** The driver has ended during a query, or has closed the connection. Code "DRIVER_GONE". */
export class DriverGoneError extends RayError {
  readonly pid: number;
  constructor({ pid, script }: DriverAbout, cause?: unknown) {
    super("DRIVER_GONE", `the driver ${pid} (${script}) has ended, or closed the connection`, {
      cause,
    });
    this.pid = pid;
  }
}

/**
 * The driver runs but does not answer: its thread is busy, or it is stopped. Code "DRIVER_SILENT".
 */
export class DriverSilentError extends RayError {
  readonly pid: number;
  constructor({ pid, script }: DriverAbout, cause?: unknown) {
    super(
      "DRIVER_SILENT",
      `the driver ${pid} (${script}) does not answer: its thread is busy, or its process is stopped`,
      { cause },
    );
    this.pid = pid;
  }
}

type Command = keyof DriverCommands;
type Answer<Name extends Command> = Awaited<ReturnType<DriverCommands[Name]>>;

export interface DriverClient {
  readonly about: DriverAbout;
  /** Resolves when the driver has closed the connection, or is gone. */
  readonly closed: Promise<DeathCause>;
  /**
   * Sends a query. Rejects with the driver's error, with DriverGoneError, or with DriverSilentError
   * after `limitMs` milliseconds.
   *
   * @param limitMs 0: no limit
   */
  ask<Name extends Command>(
    name: Name,
    args: Parameters<DriverCommands[Name]>,
    limitMs: number,
  ): Promise<Answer<Name>>;
  close(): void;
}

export type FoundDriver =
  | { readonly state: "answers"; readonly about: DriverAbout; readonly client: DriverClient }
  | { readonly state: "silent"; readonly about: DriverAbout; readonly error: RayError }
  /** The driver is gone; its files were removed. */
  | { readonly state: "gone"; readonly about: DriverAbout };

/**
 * Finds the drivers of this user, the oldest first. Rejects with RaySystemError when other users
 * could have written the files.
 *
 * @param isWanted selects drivers; others are not contacted, so that nobody waits for a silent one
 */
export async function findDrivers(
  directory: string,
  isWanted: (about: DriverAbout) => boolean = () => true,
): Promise<readonly FoundDriver[]> {
  const records = (await readRecords(directory)).filter((record) => isWanted(aboutOf(record)));
  return Promise.all(records.map((record) => findDriver(record)));
}

async function findDriver(record: FoundRecord): Promise<FoundDriver> {
  const about = aboutOf(record);
  const startedAt = clockMs();
  let found = await connectTo(record);
  const wasCut = clockMs() - startedAt < handshakeMs / 2;
  // A driver that was about to end is gone by now.
  if (found instanceof Error && wasCut && !isRefusal(found)) found = await connectTo(record);
  if (!(found instanceof Error)) return { state: "answers", about, client: found };
  if (isRefusal(found)) {
    await removeFiles(record.path);
    return { state: "gone", about };
  }
  return { state: "silent", about, error: refusalIn(found) ?? new DriverSilentError(about, found) };
}

/** Returns the connection, or the error that prevented it. */
async function connectTo(record: FoundRecord): Promise<DriverClient | Error> {
  const { path, token } = record;
  const about = aboutOf(record);
  try {
    const channel = await dial(
      { place: { path }, token },
      { peerId: newId("way"), wayId: undefined },
      { peerId: `the driver ${about.pid}`, explain: async () => ended },
    );
    return clientOf(about, channel);
  } catch (error) {
    return error as Error;
  }
}

/** Whether nobody listens at the socket. */
function isRefusal({ cause }: Error): boolean {
  const code = codeOf(cause);
  return code === "ECONNREFUSED" || code === "ENOENT";
}

/** Returns the error by which an answering driver refused this client. */
function refusalIn(error: Error): RayError | undefined {
  const isAnswer = error instanceof AuthenticationError || error instanceof ProtocolVersionError;
  return isAnswer ? error : undefined;
}

function aboutOf({ path: _path, token: _token, ...about }: FoundRecord): DriverAbout {
  return about;
}

function clientOf(about: DriverAbout, channel: Channel): DriverClient {
  const driver = wrap<DriverCommands>(channelEndpoint(channel));
  const pending = new Set<(error: Error) => void>();
  let gone: Error | undefined;
  void channel.closed.then((cause) => {
    gone = new DriverGoneError(about, cause.error);
    for (const reject of pending) reject(gone);
  });
  return {
    about,
    closed: channel.closed,
    close: () => channel.close(done),
    ask: (name, args, limitMs) =>
      new Promise((resolve, reject) => {
        if (gone !== undefined) return reject(gone);
        pending.add(reject);
        const timer =
          limitMs === 0
            ? undefined
            : timers.setTimeout(() => reject(new DriverSilentError(about)), limitMs);
        const method = driver[name] as unknown as (...given: readonly unknown[]) => Promise<never>;
        method(...args)
          .then(resolve, reject)
          .finally(() => {
            timers.clearTimeout(timer);
            pending.delete(reject);
          });
      }),
  };
}

const ended: DeathCause = { kind: "exited", message: "the driver has ended" };
const done: DeathCause = { kind: "exited", message: "the command has ended" };

/**
 * Removes the files of killed drivers, as far as their process ids show that they are gone. Never
 * fails, because a starting driver does not depend on it.
 */
export async function removeLeftFiles(directory: string): Promise<void> {
  try {
    for (const record of await readRecords(directory)) {
      if (!isRunning(record.pid)) leave(await findDriver(record));
    }
  } catch {
    // Commands look there again, and report the problem.
  }
}

function leave(found: FoundDriver): void {
  if (found.state === "answers") found.client.close();
}
