/**
 * The driver's connection to its gateway: any number of requests at once, and events.
 */
import { connect, type Socket } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import {
  asError,
  codeOf,
  deadline,
  type DeathCause,
  ProtocolVersionError,
  RaySystemError,
  reasonOf,
} from "@rayling/core/cluster";
import {
  type Announced,
  type FromGateway,
  type GatewayEvent,
  longestAnswer,
  longestRequest,
  protocolVersion,
} from "./messages.ts";
import { watchGateway } from "./gateway-watch.ts";
import { readWholeLines } from "./whole-lines.ts";

/** How long the connection may be idle before the system probes the other machine, in ms. */
const idleMs = 5000;

/** How long a gateway may send nothing, in ms, as agents may. */
export const standardTimeoutMs = 30_000;

/** The gateway has ended before it knew the driver, which may have been too slow for it. */
export class GatewayEndedError extends RaySystemError {}

/** The limits of a connection to a gateway. */
export interface GatewayLimits {
  /** How long the gateway may send nothing, in ms. Default 30,000. */
  readonly timeoutMs: number;
  /** The longest request, in bytes of its line. Default 67,108,864. */
  readonly maxRequestBytes: number;
  /** The longest answer or event, in bytes of its line. Default 268,435,456. */
  readonly maxAnswerBytes: number;
}

interface Waiting {
  readonly op: string;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class GatewayClient {
  /** Resolves when the connection is over. */
  readonly lost: Promise<DeathCause>;
  /** The job of the gateway, for messages. */
  readonly name: string;
  readonly #socket: Socket;
  readonly #onEvent: (event: GatewayEvent) => void;
  readonly #waiting: Map<number, Waiting> = new Map();
  readonly #welcomed: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #lost: PromiseWithResolvers<DeathCause> = Promise.withResolvers();
  readonly #maxRequestBytes: number;
  #lastId = 0;
  readonly #timeoutMs: number;
  #endWatch: (() => void) | undefined;
  #isSilent = false;
  #problem = "";

  constructor(
    name: string,
    socket: Socket,
    onEvent: (event: GatewayEvent) => void,
    limits: Partial<GatewayLimits> = {},
  ) {
    const { maxAnswerBytes = longestAnswer, maxRequestBytes = longestRequest } = limits;
    const { timeoutMs = standardTimeoutMs } = limits;
    this.#maxRequestBytes = maxRequestBytes;
    this.#timeoutMs = timeoutMs;
    this.name = name;
    this.#socket = socket;
    this.#onEvent = onEvent;
    this.lost = this.#lost.promise;
    socket.unref();
    socket.on("error", (error) => (this.#problem = `: ${error.message}`));
    socket.on("close", () => this.#ended());
    readWholeLines(socket, {
      maxBytes: maxAnswerBytes,
      onLine: (line) => this.#read(line),
      onTooLong: () => this.#cutFor(`it sent more than ${maxAnswerBytes} bytes in one line`),
    });
    socket.setKeepAlive(true, idleMs);
    this.#welcomed.promise.catch(() => undefined);
  }

  /**
   * Resolves when the gateway has accepted the token. Rejects with GatewayEndedError when it has
   * ended, or with why it cannot be used. From then on a gateway that sends nothing is lost.
   */
  async open(token: string): Promise<void> {
    this.#socket.write(`${JSON.stringify({ token })}\n`);
    this.#endWatch = watchGateway({
      socket: this.#socket,
      timeoutMs: this.#timeoutMs,
      ping: () => this.ask("ping"),
      onSilent: () => {
        this.#isSilent = true;
        this.#cutFor(`it has not answered for ${this.#timeoutMs / 1000} s (reconnectTimeoutMs)`);
      },
    });
    await this.#welcomed.promise;
  }

  /**
   * Asks for something. Rejects with RaySystemError when it fails, the request is too long, or the
   * gateway is lost.
   */
  async ask(op: string, given: object = {}): Promise<unknown> {
    if (this.#socket.destroyed) throw this.#gone();
    const id = this.#lastId + 1;
    const line = Buffer.from(textOf({ id, op, with: given }));
    // The gateway ends the session when a line is longer.
    if (line.length > this.#maxRequestBytes) throw tooLong(op, line.length, this.#maxRequestBytes);
    this.#lastId = id;
    this.#socket.write(line);
    return new Promise((resolve, reject) => this.#waiting.set(id, { op, resolve, reject }));
  }

  /**
   * Leaves: the gateway gives everything back, and ends. Resolves when the connection is over, with
   * whether the gateway itself has ended.
   */
  async close(): Promise<boolean> {
    this.#endWatch?.();
    this.#socket.end();
    await this.lost;
    return !this.#isSilent;
  }

  /** Ends the connection at once. */
  cut(): void {
    this.#socket.destroy();
  }

  #read(line: string): void {
    try {
      this.#take(JSON.parse(line));
    } catch (error) {
      const { message } = asError(error);
      this.#cutFor(`it sent a line of ${line.length} characters that cannot be read: ${message}`);
    }
  }

  /** Nothing behind a line that is no message can be trusted. */
  #cutFor(problem: string): void {
    this.#problem = `: ${problem}`;
    this.#socket.destroy();
  }

  #take(said: FromGateway): void {
    if ("event" in said) return this.#heard(said);
    const waiting = this.#waiting.get(said.id);
    this.#waiting.delete(said.id);
    if (said.error === undefined) return waiting?.resolve(said.ok);
    const { type, message } = said.error;
    const isOwn = type === "RaylingError";
    waiting?.reject(new RaySystemError(isOwn ? message : `${type} in Ray: ${message}`));
  }

  #heard(event: GatewayEvent): void {
    if (event.event === "welcome") {
      if (event.protocol === protocolVersion) return this.#welcomed.resolve();
      const { protocol } = event;
      return this.#welcomed.reject(new ProtocolVersionError(this.name, protocolVersion, protocol));
    }
    this.#onEvent(event);
  }

  #ended(): void {
    const error = this.#gone();
    this.#endWatch?.();
    this.#welcomed.reject(this.#isSilent ? error : new GatewayEndedError(error.message));
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    this.#lost.resolve({ kind: "unreachable", message: error.message, error });
  }

  #gone(): RaySystemError {
    return new RaySystemError(`${this.name} is gone${this.#problem}`);
  }
}

/** Returns an error that says what to do with a request of so many bytes. */
export function tooLong(
  op: string,
  bytes: number | undefined,
  most: number = longestRequest,
): RaySystemError {
  const size = bytes === undefined ? "more bytes than a text can have" : `${bytes} bytes`;
  return new RaySystemError(
    `the request ${op} to the gateway has ${size}, and may have ${most}: bytes and arrays are base64 there, 4 bytes for 3; pass less at once, or a file that the cluster can read`,
  );
}

/** @throws RaySystemError for more than a text can have */
function textOf(request: {
  readonly id: number;
  readonly op: string;
  readonly with: object;
}): string {
  try {
    return `${JSON.stringify(request)}\n`;
  } catch (error) {
    throw error instanceof RangeError ? tooLong(request.op, undefined) : error;
  }
}

/** How long an attempt may take, in ms, and what ends it before. */
export interface DialLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Connects to a gateway: on this machine, or, where it has announced a certificate, by TLS with
 * just that certificate. Rejects with GatewayEndedError when nobody listens there any more, with
 * RaySystemError, which it does after `timeoutMs`, or with the reason of `signal`.
 */
export function dialGateway(announced: Announced, limits: DialLimits): Promise<Socket> {
  const { timeoutMs, signal } = limits;
  const { fingerprint } = announced;
  const { place, name } = placeOf(announced);
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const failed = (error: Error): void =>
      reject(
        new (hasEnded(error) ? GatewayEndedError : RaySystemError)(
          `the gateway cannot be reached at ${name}: ${reasonOf(error)}`,
          { cause: error },
        ),
      );
    const socket =
      fingerprint === undefined
        ? connect(place)
        : connectTls({ ...place, minVersion: "TLSv1.3", rejectUnauthorized: false });
    socket.once("error", failed);
    const late = deadline(timeoutMs, () =>
      socket.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)),
    );
    const abort = (): void => {
      reject(asError(signal?.reason));
      socket.destroy();
    };
    signal?.addEventListener("abort", abort, { once: true });
    socket.once("close", () => {
      late.end();
      signal?.removeEventListener("abort", abort);
    });
    socket.once(fingerprint === undefined ? "connect" : "secureConnect", () => {
      late.end();
      signal?.removeEventListener("abort", abort);
      socket.removeAllListeners("error");
      socket.setNoDelay(true);
      if (fingerprint === undefined || fingerprintOf(socket) === fingerprint) {
        return resolve(socket);
      }
      socket.destroy();
      failed(new Error("another program answers there, with another certificate"));
    });
  });
}

type Place = { readonly path: string } | { readonly host: string; readonly port: number };

function placeOf({ host, path, port = 0, fingerprint }: Announced): {
  readonly place: Place;
  readonly name: string;
} {
  if (path !== undefined) return { place: { path }, name: path };
  const reached = fingerprint === undefined ? "127.0.0.1" : host;
  return { place: { host: reached, port }, name: `${reached}:${port}` };
}

/** Whether it means that nobody listens there any more: a gateway removes its socket. */
function hasEnded(error: Error): boolean {
  const code = codeOf(error);
  return code === "ECONNREFUSED" || code === "ENOENT";
}

/** The certificate stands for itself: no authority vouches for it. */
function fingerprintOf(socket: Socket): string | undefined {
  return socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.fingerprint256 : undefined;
}
