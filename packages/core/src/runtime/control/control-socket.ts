/**
 * The driver's control socket: it opens shortly after the start, for command lines of this user,
 * and closes with the session.
 *
 * It keeps no process alive, and its failure fails nothing: when it cannot open, one warning says
 * why. Its modules load when it opens.
 */
import {
  controlDirectory,
  makeDirectory,
  publish,
  removeFiles,
  removeFilesNow,
  socketPath,
} from "./control-files.ts";
import type { DriverAbout } from "../../rpc/commands.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { warn } from "../../shared/text/warning.ts";
import type { Listener } from "../../transport/link/listen.ts";
import type { FrameLimits } from "../../transport/socket/framing.ts";
import type { ControlAnswers, ControlSession } from "./control-session.ts";
import { asError, codeOf } from "../../shared/errors/thrown.ts";
import { timers } from "../../shared/machine/timers.ts";

/** Queries are short. */
const questionLimits: FrameLimits = { maxBatchBytes: 64 * 1024, maxBuffers: 0, maxBufferBytes: 0 };

/** The most clients at a time. */
const maxClients = 32;

export class ControlSocket {
  readonly #about: DriverAbout;
  readonly #answers: ControlAnswers;
  readonly #sessions: Set<ControlSession> = new Set();
  readonly #soon: NodeJS.Immediate;
  #opening: Promise<void> = Promise.resolve();
  #closeListener: (() => void) | undefined;
  #path: string | undefined;
  #isClosed = false;
  readonly #onExit = (): void => {
    try {
      if (this.#path !== undefined) removeFilesNow(this.#path);
    } catch {
      // The next driver removes what a dead one has left.
    }
  };

  constructor(about: DriverAbout, answers: ControlAnswers) {
    this.#about = about;
    this.#answers = answers;
    // The caller that started the runtime goes on first.
    this.#soon = timers.setImmediate(() => {
      this.#opening = this.#open().catch(async (error: unknown) => {
        warn(
          `the control socket cannot be opened, and commands like \`rayling status\` will not find this driver: ${asError(error).message}`,
        );
        this.#closeListener?.();
        await this.#leave();
        this.#path = undefined;
      });
    });
    this.#soon.unref();
  }

  /** Resolves when no client is connected and no file is left, or a warning names what is. */
  async close(cause: DeathCause): Promise<void> {
    this.#isClosed = true;
    timers.clearImmediate(this.#soon);
    await this.#opening;
    this.#answers.lines?.end();
    this.#closeListener?.();
    await Promise.all([...this.#sessions].map((session) => session.close(cause)));
    const left = await this.#leave();
    if (left !== undefined) {
      warn(`the files of the control socket ${this.#path} cannot be removed: ${left.message}`);
    }
  }

  /** Removes its files. Returns what kept it from that, where there are some. */
  async #leave(): Promise<Error | undefined> {
    process.off("exit", this.#onExit);
    if (this.#path === undefined) return undefined;
    try {
      await removeFiles(this.#path);
    } catch (error) {
      return asError(error);
    }
    return undefined;
  }

  async #open(): Promise<void> {
    const directory = controlDirectory();
    const [{ listen }, { newToken }, { ControlSession: Session }, { removeLeftFiles }] =
      await Promise.all([
        import("../../transport/link/listen.ts"),
        import("../../transport/connect/handshake.ts"),
        import("./control-session.ts"),
        import("./control-client.ts"),
      ]);
    if (this.#isClosed) return;
    const path = socketPath(directory, this.#about.jobId);
    const token = newToken();
    this.#path = path;
    process.once("exit", this.#onExit);
    const listener = await inDirectory(directory, () =>
      listen({
        address: { place: { path }, token },
        limits: questionLimits,
        explain: async () => clientGone,
        onChannel: (channel) => {
          if (this.#sessions.size >= maxClients) return channel.close(tooMany);
          const session = new Session(channel, this.#answers);
          this.#sessions.add(session);
          void channel.closed.then(() => this.#sessions.delete(session));
        },
      }),
    );
    this.#closeListener = () => listener.close();
    await publish(path, { ...this.#about, token });
    await removeLeftFiles(directory);
  }
}

/**
 * Runs `start` with an existing directory. Ending drivers remove the directory with the last
 * socket, so a new one may have to make it again.
 */
async function inDirectory(directory: string, start: () => Promise<Listener>): Promise<Listener> {
  for (let tries = 1; ; tries++) {
    try {
      await makeDirectory(directory);
      return await start();
    } catch (error) {
      // The system reports a socket in a missing directory as forbidden.
      const isGone = ["ENOENT", "EACCES"].includes(codeOf(error) ?? "");
      if (!isGone || tries === maxTries) throw error;
    }
  }
}

const maxTries = 5;

const clientGone: DeathCause = { kind: "exited", message: "the command has ended" };
const tooMany: DeathCause = {
  kind: "unreachable",
  message: `it answers ${maxClients} commands at the same time`,
};

/**
 * Ends the process after its session: by its own handlers of SIGTERM, if it has some, else as that
 * signal would, with its handlers of "exit".
 *
 * Errors of user code whose calls were cut off do not end the process before its hosts are gone.
 */
export async function endProcess(close: () => Promise<void>): Promise<void> {
  const ignore = (): void => undefined;
  process.on("uncaughtException", ignore);
  try {
    await close();
  } finally {
    process.off("uncaughtException", ignore);
    if (process.listenerCount("SIGTERM") > 0) process.kill(process.pid, "SIGTERM");
    else process.exit(terminated);
  }
}

/** 128 and the number of SIGTERM, as shells count. */
const terminated = 143;
