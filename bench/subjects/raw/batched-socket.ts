/**
 * The floor for many calls in flight between processes: raw batched (batched.ts) over a unix
 * socket, TCP or TLS, to a child process.
 *
 * A frame is its length in four bytes and one msgpackr buffer with the calls, or the answers, of
 * one turn; it leaves in one write.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createSecureServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { Packr } from "msgpackr";
import { portOf } from "../../measure/port.ts";
import { type Subject, sumOfPromises } from "../subject.ts";
import type { BatchedCall, BatchedResult } from "./batched.ts";
import { PendingMap, PendingSlots, type PendingTable } from "./pending-tables.ts";

export const socketName = "raw socket";
export const tcpName = "raw TCP";
export const tlsName = "raw TLS";

/** The floor that the aims are written against. */
export function rawSocketSubject(): Promise<Subject> {
  return start(socketName, new PendingMap());
}

/** The floor with the pending promises in reused slots, as in batched.ts. */
export function rawSocketSlotsSubject(): Promise<Subject> {
  return start("raw socket, slots", new PendingSlots());
}

/** Over TCP of the loopback; under TLS with that folder of certificates. */
export function rawTcpSubject(certificates?: string): Promise<Subject> {
  const name = certificates === undefined ? tcpName : tlsName;
  return start(name, new PendingMap(), { certificates });
}

/** @param network where the socket is not one of the machine alone */
async function start(
  name: string,
  pending: PendingTable<(result: number) => void>,
  network?: { readonly certificates: string | undefined },
): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-bench-"));
  const path = join(folder, "socket");
  const certificates = network?.certificates;
  const server =
    certificates === undefined
      ? createServer({ noDelay: true })
      : createSecureServer({ ...credentialsIn(certificates), noDelay: true });
  if (network === undefined) server.listen(path);
  else server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const place = network === undefined ? path : String(portOf(server));
  const file = fileURLToPath(new URL("./batched-socket-child.ts", import.meta.url));
  const child = spawn(process.execPath, [file, place, certificates ?? ""], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  const event = certificates === undefined ? "connection" : "secureConnection";
  const socket = await connected(server, event, child, name);
  const batches = new BatchedSocket<BatchedCall, BatchedResult>(socket, ([id, result]) =>
    pending.take(id)?.(result),
  );
  const add = (a: number, b: number): Promise<number> =>
    new Promise((resolve) => batches.send([pending.add(resolve), a, b]));
  await add(1, 1);
  return {
    kind: "floor",
    name,
    addOne: add,
    addMany: (base, count) => sumOfPromises(count, (index) => add(base, index)),
    async close() {
      const exit = once(child, "exit");
      socket.destroy();
      server.close();
      await exit;
      await rm(folder, { recursive: true });
    },
  };
}

/** Both ends show the same certificate. */
export function credentialsIn(folder: string): Readonly<Record<"ca" | "cert" | "key", Buffer>> {
  const read = (name: string): Buffer => readFileSync(join(folder, `${name}.pem`));
  return { ca: read("ca"), cert: read("cert"), key: read("key") };
}

async function connected(
  server: Server,
  event: string,
  child: ChildProcess,
  name: string,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const ended = (code: number | null): void =>
    reject(new Error(`${name}: the child ended with ${String(code)} before it connected`));
  server.once(event, resolve);
  child.once("exit", ended);
  try {
    return await promise;
  } finally {
    server.off(event, resolve);
    child.off("exit", ended);
  }
}

const headerBytes = 4;

/**
 * Gathers what is sent in one turn into one frame; cuts and unpacks what comes. Used by both ends.
 */
export class BatchedSocket<Out, In> {
  readonly #socket: Socket;
  readonly #packr: Packr = new Packr();
  #gathered: Out[] = [];
  /** The beginning of a frame whose end has not come. */
  #rest: Buffer | undefined;

  constructor(socket: Socket, onItem: (item: In) => void) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => {
      const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
      let at = 0;
      while (bytes.length - at >= headerBytes) {
        const end = at + headerBytes + bytes.readUInt32LE(at);
        if (end > bytes.length) break;
        for (const item of this.#packr.unpack(bytes.subarray(at + headerBytes, end)) as In[]) {
          onItem(item);
        }
        at = end;
      }
      this.#rest = at === bytes.length ? undefined : bytes.subarray(at);
    });
  }

  send(item: Out): void {
    if (this.#gathered.push(item) === 1) queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    const items = this.#gathered;
    this.#gathered = [];
    const packed = this.#packr.pack(items);
    const frame = Buffer.allocUnsafe(headerBytes + packed.length);
    frame.writeUInt32LE(packed.length);
    frame.set(packed, headerBytes);
    this.#socket.write(frame);
  }
}
