/** Hosts run what users write: one whose thread computes answers later, and is not gone. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import {
  type Address,
  type Channel,
  dialLink,
  dialOnce,
  findCredentials,
} from "@rayling/core/cluster";
import { afterAll, beforeAll, describe, expect, test, type TestContext } from "vitest";
import { makeCertificate } from "../src/index.ts";
import type { BusyListenerSettings } from "./fixtures/busy-listener.ts";

const token = "secret";
const hello = { peerId: "me", wayId: undefined };
const never = (): Promise<never> => new Promise(() => undefined);
const toListener = { peerId: "the listener", explain: never };
const patient = { ...toListener, mayBeBusy: true };

let folder: string;

interface Listener {
  readonly ways: { readonly path: Address; readonly tcp: Address; readonly tls: Address };
  /** Its thread computes from now on, until it is released. */
  readonly hold: () => Promise<void>;
  readonly release: () => void;
  /** They are closed when the test is over. */
  readonly open: Channel[];
}

const credentials = () => {
  const found = findCredentials(folder, true);
  if (found === undefined) throw new Error("there are none");
  return { credentials: found.credentials };
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-busy-"));
  await makeCertificate({ authority: folder, hosts: ["127.0.0.1"] });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A thread listens on a path, on a port and for TLS. */
async function start({ onTestFinished }: TestContext): Promise<Listener> {
  const released = new SharedArrayBuffer(4);
  const place = { host: "127.0.0.1", port: 0 };
  const path: Address = { place: { path: join(folder, `door-${Math.random()}`) }, token };
  const workerData: BusyListenerSettings = {
    doors: [
      { address: path },
      { address: { place, token }, network: {} },
      { address: { place, token, isSecure: true }, network: credentials() },
    ],
    released,
  };
  const worker = new Worker(new URL("fixtures/busy-listener.ts", import.meta.url), { workerData });
  const [addresses] = (await once(worker, "message")) as [[string, AddressInfo, AddressInfo]];
  const at = ({ port }: AddressInfo, isSecure: boolean): Address => ({
    place: { host: "127.0.0.1", port },
    token,
    isSecure,
  });
  const release = (): void => {
    Atomics.store(new Int32Array(released), 0, 1);
    Atomics.notify(new Int32Array(released), 0);
  };
  const open: Channel[] = [];
  onTestFinished(async () => {
    for (const channel of open) channel.close({ kind: "shutdown", message: "the test is over" });
    release();
    await worker.terminate();
  });
  return {
    ways: { path, tcp: at(addresses[1], false), tls: at(addresses[2], true) },
    hold: async () => {
      worker.postMessage("hold");
      await once(worker, "message");
    },
    release,
    open,
  };
}

/** Connections that wait for the thread, though whoever made them has gone: until its system takes no more. */
async function fill({ place }: Address, { expect: within }: TestContext): Promise<void> {
  const { port } = place as { readonly port: number };
  const most = Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8"));
  for (let left = most + 1; left > 0; left = most + 1 - waitingAt(port)) {
    let made = 0;
    const sockets = Array.from({ length: Math.min(100, left) }, () =>
      connect({ host: "127.0.0.1", port }, () => (made += 1)).on("error", () => undefined),
    );
    // Others wait there, too, and may come meanwhile: the last ones may find no room.
    await within
      .poll(() => made === sockets.length || waitingAt(port) > most, { interval: 5 })
      .toBe(true);
    for (const socket of sockets) socket.destroy();
  }
}

/** How many connections to a port wait for the thread that listens there. */
function waitingAt(port: number): number {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const line of readFileSync("/proc/net/tcp", "utf8").split("\n")) {
    const [, at, , state, queues] = line.trim().split(/\s+/);
    if (at === local && state === "0A") return Number.parseInt(queues?.split(":")[1] ?? "", 16);
  }
  throw new Error(`nobody listens on port ${port}`);
}

const dialsTo = ({
  ways,
}: Listener): readonly ((options: typeof toListener) => Promise<Channel>)[] => [
  (options) => dialOnce(ways.path, hello, options),
  (options) => dialOnce(ways.tcp, hello, options),
  (options) => dialLink(ways.tcp, hello, options),
  (options) => dialLink(ways.tls, hello, { ...options, network: credentials() }),
];

// They wait, each for some seconds: side by side.
describe.concurrent("a host that computes", () => {
  test("who dials a host waits until it answers, over a path, a port and TLS; who dials an agent does not", async (context) => {
    const listener = await start(context);
    const { hold, release, open } = listener;
    const dials = dialsTo(listener);
    await hold();
    const waiting = dials.map((dial) => dial(patient));
    const impatient = await Promise.allSettled(dials.map((dial) => dial(toListener)));
    for (const outcome of impatient) {
      expect(outcome).toMatchObject({
        reason: { message: "the listener cannot be reached: it did not answer within 5 s" },
      });
    }
    release();
    const channels = await Promise.all(waiting);
    open.push(...channels);
    for (const channel of channels) {
      const answered = new Promise<Uint8Array>((resolve) => {
        channel.onMessage(({ bytes }) => resolve(bytes));
      });
      channel.send({ bytes: Uint8Array.of(1, 2, 3), buffers: [] });
      expect([...(await answered)]).toEqual([1, 2, 3]);
    }
  });

  test("a link that is cut goes on with a host that is busy for longer than a cut may last", async (context) => {
    const { ways, hold, release, open } = await start(context);
    const link = await dialLink(ways.tcp, hello, {
      ...patient,
      network: { reconnectTimeoutMs: 300 },
    });
    open.push(link);
    const answers: number[] = [];
    const answered = new Promise<void>((resolve) => {
      link.onMessage(({ bytes }) => {
        if (answers.push(...bytes) === 2) resolve();
      });
    });
    link.send({ bytes: Uint8Array.of(1), buffers: [] });
    await hold();
    link.connection.cut();
    link.send({ bytes: Uint8Array.of(2), buffers: [] });
    // As long as somebody else waits for an agent: longer than a cut may last.
    await expect(dialOnce(ways.tcp, hello, toListener)).rejects.toThrow("within 5 s");
    expect(link.isOpen).toBe(true);
    release();
    await answered;
    expect(answers).toEqual([1, 2]);
    expect(link.connection.cuts).toBe(1);
  });

  test("who waits for a host makes one connection to it, however long it takes", async () => {
    let count = 0;
    // It takes connections, as the system does for a thread that computes, and says nothing.
    const server = createServer(() => (count += 1));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const address: Address = { place: { host: "127.0.0.1", port }, token };
    const waiting = dialOnce(address, hello, patient);
    waiting.catch(() => undefined);
    for (const others of [1, 2]) {
      await expect(dialOnce(address, hello, toListener)).rejects.toThrow(
        "did not answer within 5 s",
      );
      expect(count).toBe(1 + others);
    }
    server.close();
  });

  test.runIf(process.platform === "linux")(
    "a link to a host that computes lives on while so many wait there that its system answers nobody else",
    async (context) => {
      const { ways, hold, release, open } = await start(context);
      const link = await dialLink(ways.tcp, hello, {
        ...patient,
        network: { reconnectTimeoutMs: 300 },
      });
      open.push(link);
      const answered = new Promise<Uint8Array>((resolve) => {
        link.onMessage(({ bytes }) => resolve(bytes));
      });
      await hold();
      link.send({ bytes: Uint8Array.of(1), buffers: [] });
      await fill(ways.tcp, context);
      // Longer than another heartbeat is waited for, which cannot be made.
      for (let times = 0; times < 2; times++) {
        await expect(dialOnce(ways.tcp, hello, toListener)).rejects.toThrow("nothing is heard");
      }
      expect([link.isOpen, link.connection.cuts]).toEqual([true, 0]);
      release();
      expect([...(await answered)]).toEqual([1]);
      expect(link.connection.cuts).toBe(0);
    },
  );
});
