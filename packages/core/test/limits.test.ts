/** What holds for peers that have proved who they are, and for those that have not: both sides of real sockets. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Batch } from "../src/protocol/message.ts";
import type { DeathCause } from "../src/shared/errors.ts";
import { listen, type ListenOptions } from "../src/transport/link/listen.ts";
import { dial } from "../src/transport/link/dial.ts";
import { frameOf, FrameReader } from "../src/transport/socket/framing.ts";
import { protocolVersion } from "../src/transport/connect/handshake.ts";
import { Link } from "../src/transport/link/link.ts";
import type { PeerLimits } from "../src/transport/socket/slow-peers.ts";
import { SocketChannel, type SocketOptions } from "../src/transport/socket/socket.ts";
import { followGlobals } from "./fixtures/follow-globals.ts";

followGlobals();

const lost: DeathCause = { kind: "exited", exitCode: 1, message: "the other side went away" };
const token = "secret";
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A socket in the hands of the test, and a channel at its other end. */
async function pair(options: Partial<SocketOptions>): Promise<[Socket, SocketChannel, Socket]> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const raw = connect({ port, host: "127.0.0.1", noDelay: true });
  const [accepted] = (await once(server, "connection")) as [Socket];
  server.close();
  raw.on("error", () => undefined);
  const channel = new SocketChannel(accepted, {
    peer: "a peer",
    explain: async () => lost,
    ...options,
  });
  ends.push(() => {
    raw.destroy();
    channel.close(lost);
  });
  return [raw, channel, accepted];
}

const frame = (size: number): Buffer =>
  Buffer.concat(frameOf({ bytes: Buffer.alloc(size, 1), buffers: [] }));

async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
}

/** Writes, and resolves when the system has it. */
const write = (socket: Socket, bytes: Uint8Array): Promise<void> =>
  new Promise((resolve, reject) =>
    socket.write(bytes, (error) => (error ? reject(error) : resolve())),
  );

describe("a peer that is slow", () => {
  const rate: PeerLimits = {
    graceMs: 100,
    leastBytesPerSecond: 10_000,
    gapMs: 50,
    silentMs: 60_000,
  };

  test("in the middle of a frame, a byte now and then, is hung up on", async () => {
    const [raw, channel] = await pair({ rate });
    channel.onMessage(() => expect.fail("it is never whole"));
    const bytes = frame(60_000);
    let at = 0;
    const timer = setInterval(() => raw.write(bytes.subarray(at, ++at)), 20);
    ends.push(() => clearInterval(timer));
    expect(await channel.closed).toMatchObject({
      kind: "channel-broken",
      message: expect.stringContaining("at less than 10000 bytes per second"),
    });
  });

  test("because it was held between two parts of a frame is not", async () => {
    const [raw, channel, accepted] = await pair({ rate: { ...rate, leastBytesPerSecond: 1e9 } });
    const arrived: number[] = [];
    const done = new Promise<void>((resolve) => {
      channel.onMessage(({ bytes }) => {
        if (arrived.push(bytes.length) === 2) resolve();
      });
    });
    const bytes = frame(60_000);
    for (const [from, to] of [
      [0, 30_000],
      [30_000, 45_000],
      [45_000, bytes.length],
    ]) {
      const read = once(accepted, "data");
      raw.write(bytes.subarray(from, to));
      await read;
      // The thread that reads is held longer than the grace: that is no delay of the peer.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
    }
    raw.write(frame(10));
    await done;
    expect(arrived).toEqual([60_000, 10]);
  });

  test("between frames may be so for ever", async () => {
    const [raw, channel] = await pair({ rate: { ...rate, silentMs: 50 } });
    const two = new Promise<void>((resolve) => {
      let count = 0;
      channel.onMessage(() => {
        if (++count === 2) resolve();
      });
    });
    const bytes = frame(70_000);
    await write(raw, bytes.subarray(0, 30_000));
    await write(raw, bytes.subarray(30_000));
    // Another one, which began later, is found silent: so this one was looked at, too.
    const [other, silent] = await pair({ rate: { ...rate, silentMs: 50 } });
    silent.onMessage(() => undefined);
    other.write(frame(1000).subarray(0, 500));
    await silent.closed;
    raw.write(frame(3));
    await two;
    expect(channel.isOpen).toBe(true);
  });

  test("and says nothing any more in the middle of a frame is hung up on", async () => {
    const [raw, channel] = await pair({ rate: { ...rate, silentMs: 100 } });
    channel.onMessage(() => expect.fail("it is never whole"));
    raw.write(frame(1000).subarray(0, 500));
    expect(await channel.closed).toMatchObject({
      kind: "channel-broken",
      message: expect.stringContaining("did not continue"),
    });
  });
});

describe("a peer that does not read", () => {
  test("is hung up on when too much waits for it", async () => {
    const [raw, channel] = await pair({ maxUnreadBytes: 4 * 1024 ** 2 });
    raw.pause();
    const batch: Batch = { bytes: new Uint8Array(60_000), buffers: [] };
    let sent = 0;
    while (channel.isOpen) {
      channel.send(batch);
      // More than systems keep for a socket.
      expect(++sent).toBeLessThan(2000);
    }
    expect(await channel.closed).toMatchObject({
      kind: "channel-broken",
      message: expect.stringContaining("bytes wait for a peer to read them"),
    });
  });

  test("as fast as a channel that is closed speaks gets all of it, and one that takes nothing is not waited for", async () => {
    const size = 32 * 1024 ** 2;
    const [raw, channel, accepted] = await pair({});
    const seen = { bytes: 0 };
    raw.on("data", ({ length }: Buffer) => (seen.bytes += length));
    raw.pause();
    const [, second, deaf] = await pair({});
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "hrtime"] });
    ends.push(() => vi.useRealTimers());
    channel.send({ bytes: new Uint8Array(size), buffers: [] });
    second.send({ bytes: new Uint8Array(size), buffers: [] });
    channel.close(lost);
    second.close(lost);
    while (seen.bytes < size + 8 && !raw.closed) {
      const enough = Math.min(seen.bytes + 6 * 1024 ** 2, size + 8);
      raw.resume();
      while (seen.bytes < enough && !raw.closed)
        await new Promise((resolve) => setImmediate(resolve));
      raw.pause();
      // Longer than a channel that is closed waits for somebody who takes nothing.
      await vi.advanceTimersByTimeAsync(6000);
    }
    raw.resume();
    await Promise.all([closed(accepted), closed(deaf), closed(raw)]);
    expect(seen.bytes).toBe(size + 8);
  });

  test("but has asked for big values is waited for", async () => {
    const [raw, channel] = await pair({ maxUnreadBytes: 4 * 1024 ** 2 });
    raw.pause();
    const buffer = new SharedArrayBuffer(8 * 1024 ** 2);
    for (let sent = 0; sent < 20; sent++)
      channel.send({ bytes: Uint8Array.of(1), buffers: [buffer] });
    expect(channel.isOpen).toBe(true);
  });

  test("or does not say that it has what was sent over a link", async () => {
    const [, wire] = await pair({});
    const link = new Link({
      peer: "a peer",
      explain: () => new Promise(() => undefined),
      maxUnreadBytes: 100_000,
    });
    link.attach({ wire, received: 0 });
    link.send({ bytes: new Uint8Array(60_000), buffers: [new SharedArrayBuffer(8 * 1024 ** 2)] });
    expect(link.isOpen).toBe(true);
    link.send({ bytes: new Uint8Array(60_000), buffers: [] });
    expect(link.isOpen).toBe(false);
    expect(await link.closed).toMatchObject({ kind: "channel-broken" });
  });
});

describe("a house full of connections that say nothing", () => {
  async function house(options: Partial<ListenOptions>): Promise<AddressInfo> {
    const listener = await listen({
      address: { place: { host: "127.0.0.1", port: 0 }, token },
      explain: () => new Promise(() => undefined),
      onChannel: () => undefined,
      ...options,
    });
    ends.push(() => listener.close());
    return listener.address as AddressInfo;
  }
  const silent = async (port: number, localAddress = "127.0.0.1"): Promise<Socket> => {
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined);
    ends.push(() => socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  const knock = async (port: number, more: { mayBeBusy?: boolean } = {}): Promise<void> => {
    const address = { place: { host: "127.0.0.1", port }, token };
    const channel = await dial(
      address,
      { peerId: "me", wayId: undefined },
      {
        peerId: "the listener",
        explain: () => new Promise(() => undefined),
        ...more,
      },
    );
    channel.close(lost);
  };

  test("lets in who has the token, however many keep coming", async () => {
    const { port } = await house({ unknown: { most: 8, ms: 600_000 } });
    const sockets = await Promise.all(Array.from({ length: 50 }, () => silent(port)));
    for (let round = 0; round < 5; round++) {
      await knock(port);
      sockets.push(await silent(port), await silent(port));
    }
    // All but the last eight were told to go.
    await Promise.all(sockets.slice(0, -8).map((socket) => closed(socket)));
    expect(sockets.slice(-8).every((socket) => !socket.closed)).toBe(true);
  });

  test("lets in all who have the token, also where they come at once and take each other's places", async () => {
    const { port } = await house({ unknown: { most: 2, ms: 600_000 } });
    // With a host's patience: where the machine holds this thread up, all come at once time and again, and two of them are let in.
    await Promise.all(Array.from({ length: 100 }, () => knock(port, { mayBeBusy: true })));
  });

  test("turns somebody away in the middle of the handshake, who comes again and does not take his token for wrong", async () => {
    const { port } = await house({});
    const bytes = Buffer.from(JSON.stringify({ version: protocolVersion, nonce: "n" }));
    const challenge = Buffer.concat(frameOf({ bytes, buffers: [] }));
    let count = 0;
    const way = createServer((socket) => {
      socket.on("error", () => undefined);
      if ((count += 1) > 2) {
        const behind = connect({ port, host: "127.0.0.1" });
        socket.pipe(behind).pipe(socket);
        return;
      }
      // It lost its place, before it was answered and behind the challenge.
      socket.once("data", () => {
        if (count === 2) socket.write(challenge);
        socket.end();
      });
    });
    way.listen(0, "127.0.0.1");
    ends.push(() => way.close());
    await once(way, "listening");
    await knock((way.address() as AddressInfo).port);
    // After the two that lost their places, its heartbeat and its connection.
    expect(count).toBe(4);
  });

  test("gives up places of those from where most come, not of others", async () => {
    const { port } = await house({ unknown: { most: 8, ms: 600_000 } });
    const first = await silent(port, "127.0.0.2");
    const many: Socket[] = [];
    for (let count = 0; count < 50; count++) many.push(await silent(port, "127.0.0.3"));
    await Promise.all(many.slice(0, -7).map((socket) => closed(socket)));
    expect(first.closed).toBe(false);
  });

  test("is empty again when their time is over", async () => {
    const { port } = await house({ unknown: { most: 8, ms: 50 } });
    const sockets = await Promise.all(Array.from({ length: 8 }, () => silent(port)));
    await Promise.all(sockets.map((socket) => closed(socket)));
    // Its own time may be over, too, on a machine that is held up.
    const isLetIn = async (): Promise<boolean> =>
      await knock(port).then(
        () => true,
        () => false,
      );
    await expect.poll(isLetIn).toBe(true);
  });
});

describe("a frame that says it is long", () => {
  const head = (size: number, lengths: readonly number[] = []): Buffer => {
    const bytes = Buffer.alloc(8 + 6 * lengths.length);
    bytes.writeUInt32LE(size, 0);
    bytes.writeUInt32LE(lengths.length, 4);
    for (const [index, length] of lengths.entries()) bytes.writeUIntLE(length, 8 + 6 * index, 6);
    return bytes;
  };

  test("takes memory as it arrives", () => {
    const before = process.memoryUsage().arrayBuffers;
    const readers = Array.from({ length: 100 }, () => new FrameReader());
    for (const reader of readers) {
      reader.push(head(1024 ** 3));
      expect(reader.next()).toBeUndefined();
      reader.push(Buffer.alloc(1000));
      expect(reader.next()).toBeUndefined();
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20e6);
  });

  test("with a million buffers takes memory for the first of them", () => {
    const before = process.memoryUsage().arrayBuffers;
    const reader = new FrameReader();
    reader.push(
      head(
        4,
        Array.from({ length: 1024 ** 2 }, () => 65_536),
      ),
    );
    expect(reader.next()).toBeUndefined();
    reader.push(Buffer.alloc(10));
    expect(reader.next()).toBeUndefined();
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20e6);
  });

  test("and is, is read whole", () => {
    const reader = new FrameReader();
    const bytes = Buffer.from(Uint8Array.from({ length: 1_000_000 }, (_, index) => index * 7));
    reader.push(head(bytes.length));
    let batch: Batch | undefined;
    for (let at = 0; at < bytes.length; at += 1400) {
      expect((batch = reader.next())).toBeUndefined();
      reader.push(bytes.subarray(at, at + 1400));
    }
    batch = reader.next();
    expect(Buffer.compare(batch?.bytes ?? Buffer.alloc(0), bytes)).toBe(0);
    expect(reader.isBetweenFrames).toBe(true);
  });
});
