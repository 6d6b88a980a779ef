import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { MessageChannel } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Batch } from "../src/protocol/message.ts";
import { AuthenticationError, type DeathCause, RaySystemError } from "../src/shared/errors.ts";
import type { Channel } from "../src/transport/channel.ts";
import type { Address, Hello } from "../src/transport/address.ts";
import { listen, type Listener } from "../src/transport/link/listen.ts";
import { dial, type DialOptions } from "../src/transport/link/dial.ts";
import { frameOf } from "../src/transport/socket/framing.ts";
import { introduce, protocolVersion, TurnedAwayError } from "../src/transport/connect/handshake.ts";
import { SocketChannel } from "../src/transport/socket/socket.ts";
import { threadChannel } from "../src/transport/thread.ts";

const lost: DeathCause = { kind: "exited", exitCode: 1, message: "the other side went away" };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-test-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Listening {
  readonly address: Address;
  readonly path: string;
  readonly listener: Listener;
  /** The next one that is welcome. */
  readonly accepted: () => Promise<{ channel: Channel; hello: Hello }>;
}

async function listening(): Promise<Listening> {
  const path = join(folder, randomBytes(4).toString("hex"));
  const address = { place: { path }, token: "secret" };
  const come: { channel: Channel; hello: Hello }[] = [];
  const waiting: ((one: { channel: Channel; hello: Hello }) => void)[] = [];
  const listener = await listen({
    address,
    explain: async () => lost,
    onChannel: (channel, hello) => {
      const waiter = waiting.shift();
      if (waiter === undefined) come.push({ channel, hello });
      else waiter({ channel, hello });
    },
  });
  return {
    address,
    path,
    listener,
    accepted: () =>
      new Promise((resolve) => {
        const one = come.shift();
        if (one === undefined) waiting.push(resolve);
        else resolve(one);
      }),
  };
}

const toListener: DialOptions = { peerId: "the listener", explain: async () => lost };
const hello: Hello = { peerId: "dialler", wayId: undefined };

const pairs: readonly [string, () => Promise<readonly [Channel, Channel]>][] = [
  [
    "between threads",
    async () => {
      const { port1, port2 } = new MessageChannel();
      return [threadChannel(port1, async () => lost), threadChannel(port2, async () => lost)];
    },
  ],
  [
    "over a socket",
    async () => {
      const { address, accepted } = await listening();
      const left = await dial(address, hello, toListener);
      return [left, (await accepted()).channel];
    },
  ],
];

const numbered = (index: number, length = 4): Batch => {
  const bytes = new Uint8Array(length);
  new DataView(bytes.buffer).setUint32(0, index);
  return { bytes, buffers: [] };
};
const numberOf = ({ bytes }: Batch): number =>
  new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);

/** The first so many that arrive. */
const take = (channel: Channel, count: number): Promise<Batch[]> =>
  new Promise((resolve) => {
    const taken: Batch[] = [];
    channel.onMessage((batch) => {
      if (taken.push(batch) === count) resolve(taken);
    });
  });

describe.each(pairs)("a channel %s", (_name, pair) => {
  test("delivers in order, small and large, buffers beside", async () => {
    const [left, right] = await pair();
    const memory = new SharedArrayBuffer(300_000);
    new Uint8Array(memory).fill(9);
    const sent = Array.from({ length: 500 }, (_, index) => ({
      ...numbered(index, 4 + ((index * 997) % 70_000)),
      buffers: index % 50 === 0 ? [memory] : [],
    }));
    for (const batch of sent) left.send(batch);
    const arrived = await take(right, 500);
    expect(arrived.map(numberOf)).toEqual(sent.map((_, index) => index));
    expect(arrived.map(({ bytes }) => bytes.length)).toEqual(sent.map(({ bytes }) => bytes.length));
    const [buffer] = arrived[50]?.buffers ?? [];
    expect(buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(new Uint8Array(buffer as SharedArrayBuffer)).toEqual(new Uint8Array(memory));
    left.close(lost);
  });

  test("speaks in both directions at once", async () => {
    const [left, right] = await pair();
    const both = Promise.all([take(left, 100), take(right, 100)]);
    for (let index = 0; index < 100; index++) {
      left.send(numbered(index));
      right.send(numbered(1000 + index));
    }
    const [toLeft, toRight] = await both;
    expect(toLeft.map(numberOf)[99]).toBe(1099);
    expect(toRight.map(numberOf)[99]).toBe(99);
    left.close(lost);
  });

  test("delivers what was sent before it was closed", async () => {
    const [left, right] = await pair();
    for (let index = 0; index < 2000; index++) left.send(numbered(index, 2000));
    left.close(lost);
    expect((await take(right, 2000)).map(numberOf)[1999]).toBe(1999);
    expect(await right.closed).toEqual(lost);
  });

  test("that is closed throws on send, delivers nothing, and keeps its first reason", async () => {
    const [left, right] = await pair();
    const killed: DeathCause = { kind: "killed", message: "first" };
    right.onMessage(() => expect.fail("nothing may arrive"));
    right.close(killed);
    right.close(lost);
    expect(await right.closed).toEqual(killed);
    expect(right.isOpen).toBe(false);
    expect(() => right.send(numbered(1))).toThrow("closed");
    left.onMessage(() => undefined);
    expect(await left.closed).toEqual(lost);
    expect(() => left.send(numbered(1))).toThrow("closed");
  });

  test("that one side cannot read is broken for both", async () => {
    const [left, right] = await pair();
    left.onMessage(() => undefined);
    right.onMessage(() => right.close({ kind: "channel-broken", message: "what is that" }));
    left.send(numbered(1));
    expect(await left.closed).toMatchObject({ kind: "channel-broken" });
  });

  test("is drained when all of it is out of its hands", async () => {
    const [left, right] = await pair();
    for (let index = 0; index < 100; index++) left.send(numbered(index, 60_000));
    const all = take(right, 100);
    await left.drained();
    left.close(lost);
    expect((await all).map(numberOf)[99]).toBe(99);
  });
});

test("a channel that is closed while the other side still speaks does not take along what it sent", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const far = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [near] = (await once(server, "connection")) as [Socket];
  server.close();
  const left = new SocketChannel(near, { peer: "far", explain: async () => lost });
  const right = new SocketChannel(far, { peer: "near", explain: async () => lost });
  for (let index = 0; index < 300; index++) right.send(numbered(index, 5000));
  right.close(lost);
  await once(far, "finish");
  await turn();
  // It arrives where nobody reads any more.
  left.send(numbered(0));
  await left.drained();
  await turn();
  expect((await take(left, 300)).map(numberOf)).toEqual(Array.from({ length: 300 }, (_, n) => n));
  left.close(lost);
});

/** Whatever is done at once is done. */
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** Somebody who listens, says those bytes one after the other, each when something was said to it, and then nothing more. */
async function saying(...answers: readonly Buffer[]): Promise<SocketChannel> {
  const path = join(folder, randomBytes(4).toString("hex"));
  const server = createServer((socket) => {
    const left = [...answers];
    socket.on("data", () => void (left.length > 0 && socket.write(left.shift() as Buffer)));
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  server.unref();
  const rate = { graceMs: 20, leastBytesPerSecond: 1024, gapMs: 20, silentMs: 20 };
  return new SocketChannel(connect(path), { peer: "it", explain: async () => lost, rate });
}

const framed = (text: string): Buffer =>
  Buffer.concat(frameOf({ bytes: Buffer.from(text), buffers: [] }));
const challenge = framed(JSON.stringify({ version: protocolVersion, nonce: "n" }));
const welcome = framed(JSON.stringify({ proof: "wrong" }));
const tooLong = Buffer.alloc(8, 0xff);
const gaveUp = Buffer.alloc(8);

describe("who dials", () => {
  test.each<[string, readonly Buffer[], new (...args: never[]) => Error]>([
    ["a wrong proof has the wrong token", [challenge, welcome], AuthenticationError],
    ["that it could not be read has the wrong token", [challenge, gaveUp], AuthenticationError],
    ["half a welcome was cut off", [challenge, welcome.subarray(0, 20)], TurnedAwayError],
    ["a welcome that is no frame was cut off", [challenge, tooLong], TurnedAwayError],
    ["half a challenge was cut off", [challenge.subarray(0, 20)], TurnedAwayError],
    ["what is no welcome reached somebody else", [challenge, framed("null")], RaySystemError],
    ["what is no frame reached somebody else", [tooLong], RaySystemError],
  ])("and hears %s", async (_name, answers, Kind) => {
    const channel = await saying(...answers);
    const error: unknown = await introduce(channel, "secret", { ...hello }, "it").then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    channel.close(lost);
    expect((error as Error).constructor).toBe(Kind);
  });
});

describe("a listener", () => {
  test("is told who dials and for what request", async () => {
    const { address, accepted } = await listening();
    const channel = await dial(address, { peerId: "me", wayId: "way-1" }, toListener);
    expect((await accepted()).hello).toEqual({ peerId: "me", wayId: "way-1" });
    channel.close(lost);
  });

  test("does not welcome who has the wrong token, and welcomes the next", async () => {
    const { address, accepted } = await listening();
    const wrong = { ...address, token: "guess" };
    const refused = dial(wrong, hello, toListener);
    await expect(refused).rejects.toThrow(AuthenticationError);
    const channel = await dial(address, hello, toListener);
    expect((await accepted()).hello.peerId).toBe("dialler");
    channel.close(lost);
  });

  test.each<[string, Buffer]>([
    ["what is no frame", Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")],
    [
      "a hello that is too long",
      Buffer.concat(frameOf({ bytes: Buffer.alloc(5000), buffers: [] })),
    ],
    ["what is no hello", Buffer.concat(frameOf({ bytes: Buffer.from("null"), buffers: [] }))],
    ["an empty frame", Buffer.alloc(8)],
  ])("hangs up on %s without a word", async (_name, bytes) => {
    const { path } = await listening();
    const socket = connect(path);
    const said: Buffer[] = [];
    socket.on("data", (chunk) => said.push(chunk));
    socket.write(bytes);
    await once(socket, "close");
    // An empty frame is "I cannot read you", which says nothing about anything.
    expect(Buffer.concat(said).every((byte) => byte === 0)).toBe(true);
  });

  test("that is not there rejects who dials", async () => {
    const address = { place: { path: join(folder, "nobody") }, token: "x" };
    await expect(dial(address, hello, toListener)).rejects.toThrow(
      "the listener cannot be reached",
    );
  });

  test("that is a welcome peer and then sends garbage ends the channel as broken", async () => {
    const { address, path, accepted } = await listening();
    const socket = connect(path);
    const dialler = new SocketChannel(socket, { peer: "the listener", explain: async () => lost });
    await introduce(dialler, address.token, { ...hello }, "the listener");
    socket.write(Buffer.alloc(8, 127));
    const { channel } = await accepted();
    channel.onMessage(() => expect.fail("nothing may arrive"));
    const cause = await channel.closed;
    expect(cause.kind).toBe("channel-broken");
    expect(cause.message).toContain("over the limit");
    socket.destroy();
  });
});
