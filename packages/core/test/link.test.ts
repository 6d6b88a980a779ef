import dns from "node:dns";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { Batch } from "../src/protocol/message.ts";
import type { DeathCause } from "../src/shared/errors.ts";
import type { Channel } from "../src/transport/channel.ts";
import type { Hello, NetworkSettings } from "../src/transport/address.ts";
import { listen } from "../src/transport/link/listen.ts";
import { dial, dialLater } from "../src/transport/link/dial.ts";
import { drainAll } from "../src/transport/drain.ts";
import { provesLoss } from "../src/transport/connect/peer-probe.ts";
import { firstOf } from "../src/transport/connect/first-connection.ts";
import { isLookingUp, joinedLookup } from "../src/transport/connect/name-lookup.ts";
import { introduce } from "../src/transport/connect/handshake.ts";
import type { Link } from "../src/transport/link/link.ts";
import { SocketChannel } from "../src/transport/socket/socket.ts";
import { Cuttable } from "./fixtures/cuttable.ts";
import { sized } from "../../../test/fixtures/suite.ts";
import { followGlobals } from "./fixtures/follow-globals.ts";

followGlobals();

const token = "secret";
const hello: Hello = { peerId: "dialler", wayId: undefined };
const died: DeathCause = { kind: "exited", exitCode: 1, message: "it died" };
const never = (): Promise<DeathCause> => new Promise(() => undefined);
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

interface Pair {
  readonly left: Link;
  readonly right: Link;
  readonly way: Cuttable;
  /** Of the listener itself. */
  readonly port: number;
}

async function pair({
  network = {},
  listening = network,
  explainLeft = never,
  explainRight = never,
  whenExplainable,
}: {
  readonly network?: NetworkSettings;
  /** Of the listener. */
  readonly listening?: NetworkSettings;
  readonly explainLeft?: () => Promise<DeathCause>;
  readonly explainRight?: () => Promise<DeathCause>;
  /** Of the left one. */
  readonly whenExplainable?: () => Promise<unknown>;
} = {}): Promise<Pair> {
  const accepted = Promise.withResolvers<Channel>();
  const listener = await listen({
    address: { place: { host: "127.0.0.1", port: 0 }, token },
    explain: explainRight,
    onChannel: (channel) => accepted.resolve(channel),
    network: listening,
  });
  const { port } = listener.address as AddressInfo;
  const way = new Cuttable(port);
  const place = { host: "127.0.0.1", port: await way.listen() };
  const left = (await dial({ place, token }, hello, {
    peerId: "the listener",
    explain: explainLeft,
    ...(whenExplainable && { whenExplainable }),
    network,
  })) as Link;
  const right = (await accepted.promise) as Link;
  ends.push(() => {
    left.close(died);
    right.close(died);
    way.end();
    listener.close();
  });
  return { left, right, way, port };
}

/** Says those words to the listener, over a connection that nobody looks after. */
async function introduced(
  port: number,
  words: object,
  withToken: string = token,
): Promise<SocketChannel & { readonly welcome: unknown }> {
  const channel = new SocketChannel(connect({ port, host: "127.0.0.1" }), {
    peer: "the listener",
    explain: async () => died,
  });
  ends.push(() => channel.close(died));
  const welcome = await introduce(channel, withToken, { ...hello, ...words }, "the listener");
  return Object.assign(channel, { welcome });
}

/** The listener's link to somebody who says nothing unless the test does, just cut, and its heartbeat, too; its time is the test's. */
async function cutByTest() {
  const accepted = Promise.withResolvers<Channel>();
  const listener = await listen({
    address: { place: { host: "127.0.0.1", port: 0 }, token },
    explain: never,
    onChannel: (channel) => accepted.resolve(channel),
    network: { reconnectTimeoutMs: 1000, explainMs: 10 },
  });
  const { port } = listener.address as AddressInfo;
  const beside = await introduced(port, { heartbeatOf: "way-1", isNew: true });
  const wire = await introduced(port, { linkId: "way-1" });
  const link = (await accepted.promise) as Link;
  ends.push(
    () => link.close(died),
    () => listener.close(),
  );
  // The link has read the clock before: its time goes on from there.
  const [began] = process.hrtime();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const clock = vi.spyOn(process, "hrtime").mockImplementation(() => {
    const ms = performance.now();
    return [began + Math.floor(ms / 1e3), Math.floor((ms % 1e3) * 1e6)];
  });
  ends.push(() => {
    clock.mockRestore();
    vi.useRealTimers();
  });
  for (const one of [wire, beside]) one.close(died);
  // The listener hears of it over the sockets, whose time is not the test's.
  while (link.connection.cuts === 0 || link.connection.isHeldBeside)
    await new Promise((resolve) => setImmediate(resolve));
  const tick = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  return { port, link, tick };
}

type DnsAnswer = (error: Error | null, addresses: readonly dns.LookupAddress[]) => void;

/** Answers the look-ups of all names. */
function named(lookUp: (name: string, answer: DnsAnswer) => void): void {
  const spy = vi
    .spyOn(dns, "lookup")
    .mockImplementation(((name: string, _: dns.LookupOptions, answer: DnsAnswer) =>
      lookUp(name, answer)) as typeof dns.lookup);
  ends.push(() => spy.mockRestore());
}

const found = (address: string): dns.LookupAddress => ({
  address,
  family: address.includes(":") ? 6 : 4,
});

const numbered = (index: number, length = 4): Batch => {
  const bytes = new Uint8Array(length);
  new DataView(bytes.buffer).setUint32(0, index);
  return { bytes, buffers: [] };
};
const numberOf = ({ bytes }: Batch): number =>
  new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);

describe("a link", () => {
  test("loses and repeats nothing while its connection is cut again and again", async () => {
    const { left, right, way } = await pair();
    const count = sized({ gate: 8000, full: 20_000 });
    const seen: [number[], number[]] = [[], []];
    const all = [left, right].map(
      (link, side) =>
        new Promise<void>((resolve) => {
          link.onMessage((batch) => {
            seen[side]?.push(numberOf(batch));
            if (seen[side]?.length === count) resolve();
            // Cuts come from what arrives, so that they fall into the middle of it.
            if (side === 1 && seen[1].length % 1500 === 0) way.cut();
          });
        }),
    );
    for (let index = 0; index < count; index++) {
      left.send(numbered(index, 4 + ((index * 37) % 3000)));
      right.send(numbered(index, 4 + ((index * 91) % 500)));
      if (index % 200 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(all);
    const wanted = Array.from({ length: count }, (_, index) => index);
    expect(seen[0]).toEqual(wanted);
    expect(seen[1]).toEqual(wanted);
    expect(left.connection.cuts).toBeGreaterThan(0);
    expect(way.connections).toBeGreaterThan(1);
  });

  test("keeps what is sent while it is cut, buffers and all", async () => {
    const { left, right, way } = await pair();
    way.closed = true;
    const memory = new SharedArrayBuffer(3_000_000);
    new Uint8Array(memory).fill(7);
    for (let index = 0; index < 10; index++) left.send({ ...numbered(index), buffers: [memory] });
    const arrived = new Promise<Batch[]>((resolve) => {
      const batches: Batch[] = [];
      right.onMessage((batch) => {
        if (batches.push(batch) === 10) resolve(batches);
      });
    });
    way.closed = false;
    const batches = await arrived;
    expect(batches.map(numberOf)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const { buffers } of batches) {
      // Compared as bytes: a deep comparison of so many numbers takes seconds.
      const bytes = Buffer.from(buffers[0] as SharedArrayBuffer);
      expect(bytes.equals(Buffer.from(memory))).toBe(true);
    }
    await left.drained();
  });

  test("that stays cut for too long is lost, on both sides, and says so", async () => {
    const { left, right, way } = await pair({ network: { reconnectTimeoutMs: 50, explainMs: 10 } });
    left.onMessage(() => undefined);
    right.onMessage(() => undefined);
    way.closed = true;
    // Nobody can explain it, which is waited for before it is given up.
    const [of, by] = await Promise.all([left.closed, right.closed]);
    expect(of).toMatchObject({ kind: "unreachable", error: { code: "SYSTEM" } });
    // With what the last attempt found.
    expect(of.message).toMatch(
      /^the listener could not be reached for 0.05 s: .*(ECONNRESET|ended the connection)/,
    );
    expect(by.message).toBe("dialler could not be reached for 0.05 s");
    expect(() => left.send(numbered(0))).toThrow("closed");
  });

  test("that is lost waits for who can explain it to be heard, however long that takes", async () => {
    const gone = Promise.withResolvers<DeathCause>();
    const heard = Promise.withResolvers<void>();
    const { left, right, way } = await pair({
      network: { reconnectTimeoutMs: 10, explainMs: 0 },
      explainLeft: () => gone.promise,
      whenExplainable: () => heard.promise,
    });
    left.onMessage(() => undefined);
    right.onMessage(() => undefined);
    way.closed = true;
    // The other side waits for nobody, and ends much later than its own time to explain.
    expect(await right.closed).toMatchObject({ kind: "unreachable" });
    const closed = vi.fn<(cause: DeathCause) => void>();
    void left.closed.then(closed);
    for (let turns = 0; turns < 100; turns++) await new Promise((resolve) => setTimeout(resolve));
    expect(closed).not.toHaveBeenCalled();
    gone.resolve(died);
    expect(await left.closed).toBe(died);
  });

  test("that is reached again while it is still to be explained why it was lost lives on", async () => {
    const asked = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<void>();
    const { left, right, way } = await pair({
      network: { reconnectTimeoutMs: 10, explainMs: 0 },
      listening: { reconnectTimeoutMs: 60_000 },
      whenExplainable: () => {
        asked.resolve();
        return heard.promise;
      },
    });
    const arrived: number[] = [];
    right.onMessage((batch) => arrived.push(numberOf(batch)));
    way.closed = true;
    await asked.promise;
    way.closed = false;
    left.send(numbered(1));
    await expect.poll(() => arrived).toEqual([1]);
    heard.resolve();
    // Its own time to be explained is over in one of the first.
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve));
    left.send(numbered(2));
    await expect.poll(() => arrived).toEqual([1, 2]);
  });

  test("that is cut again while it is still to be explained why it was lost has its whole time for that cut", async () => {
    const asked = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<void>();
    const { left, right, way } = await pair({
      network: { reconnectTimeoutMs: 1000, explainMs: 0 },
      listening: { reconnectTimeoutMs: 60_000 },
      whenExplainable: () => {
        asked.resolve();
        return heard.promise;
      },
    });
    const arrived: number[] = [];
    right.onMessage((batch) => arrived.push(numberOf(batch)));
    way.closed = true;
    await asked.promise;
    way.closed = false;
    left.send(numbered(1));
    await expect.poll(() => arrived).toEqual([1]);
    const { cuts } = left.connection;
    way.closed = true;
    await expect.poll(() => left.connection.cuts).toBe(cuts + 1);
    heard.resolve();
    // The explanation of the first cut is over in one of the first turns.
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve));
    way.closed = false;
    left.send(numbered(2));
    await expect.poll(() => arrived).toEqual([1, 2]);
  });

  test("that is lost is not explained any more, a while after who could do so was heard", async () => {
    const heard = Promise.withResolvers<void>();
    const { left, right, way } = await pair({
      network: { reconnectTimeoutMs: 10, explainMs: 0 },
      whenExplainable: () => heard.promise,
    });
    left.onMessage(() => undefined);
    right.onMessage(() => undefined);
    way.closed = true;
    heard.resolve();
    expect(await left.closed).toMatchObject({ kind: "unreachable" });
  });

  test("whose connections break before anything comes over them is lost after the same time", async () => {
    const { left, right, way } = await pair({
      network: { reconnectTimeoutMs: 200, explainMs: 10 },
      // It does not give up first.
      listening: { explainMs: 10 },
    });
    left.onMessage(() => undefined);
    right.onMessage(() => undefined);
    const attach = left.attach.bind(left);
    left.attach = (resumed) => {
      attach(resumed);
      way.cut();
    };
    way.cut();
    const { message } = await left.closed;
    expect(message).toContain("the listener could not be reached for 0.2 s");
    expect(left.connection.cuts).toBeGreaterThan(1);
  });

  test("whose peer is known to be gone ends with that cause, whether cut or not", async () => {
    const gone = Promise.withResolvers<DeathCause>();
    const { left, right, way } = await pair({ explainLeft: () => gone.promise });
    left.onMessage(() => undefined);
    right.onMessage(() => undefined);
    way.closed = true;
    gone.resolve(died);
    expect(await left.closed).toEqual(died);
    expect(left.isOpen).toBe(false);
  });

  test("delivers what a peer sent last that is known to be gone before it arrives", async () => {
    const gone = Promise.withResolvers<DeathCause>();
    const { left, right } = await pair({
      network: { explainMs: 60_000 },
      explainLeft: () => gone.promise,
    });
    for (let index = 0; index < 500; index++) right.send(numbered(index, 5000));
    gone.resolve(died);
    await gone.promise;
    expect(left.isOpen).toBe(false);
    let count = 0;
    left.onMessage(() => (count += 1));
    right.close(died);
    expect(await left.closed).toEqual(died);
    expect(count).toBe(500);
  });

  test("to a host whose node is lost ends at once where nothing has come from there for long", async () => {
    const gone = Promise.withResolvers<DeathCause>();
    const { left } = await pair({
      network: { explainMs: 600_000 },
      explainLeft: () => gone.promise,
    });
    const [now] = process.hrtime();
    const clock = vi.spyOn(process, "hrtime").mockReturnValue([now + 3600, 0]);
    ends.push(() => clock.mockRestore());
    const lost: DeathCause = { kind: "node-died", message: "it stands still" };
    gone.resolve(lost);
    const later = new Promise((resolve) => setImmediate(resolve));
    expect(await Promise.race([left.closed, later])).toBe(lost);
  });

  test("is waited for at the end of a process no longer than all of them together", async () => {
    const pairs = await Promise.all(Array.from({ length: 5 }, () => pair()));
    for (const { left } of pairs) left.send(numbered(1));
    vi.useFakeTimers({ toFake: ["performance", "hrtime"] });
    const wait = vi.spyOn(Atomics, "wait").mockImplementation(() => {
      vi.advanceTimersByTime(1);
      return "timed-out";
    });
    try {
      // Nobody hears at their other ends: this thread is held.
      drainAll(pairs.map(({ left }) => left));
      expect(wait).toHaveBeenCalledTimes(2000);
    } finally {
      wait.mockRestore();
      vi.useRealTimers();
    }
  });

  test("that one side closes is closed for the other", async () => {
    const { left, right } = await pair({ network: { explainMs: 10 } });
    const arrived = new Promise<number>((resolve) => {
      right.onMessage((batch) => resolve(numberOf(batch)));
    });
    left.send(numbered(1));
    left.close(died);
    expect(await left.closed).toEqual(died);
    expect(await arrived).toBe(1);
    expect(await right.closed).toMatchObject({ message: "it ended the connection" });
  });

  test("that is closed by who dialled while it is cut is closed for the other", async () => {
    const { left, right, way } = await pair({
      network: { reconnectTimeoutMs: 600_000, explainMs: 10 },
    });
    way.closed = true;
    await expect.poll(() => left.connection.cuts).toBe(1);
    left.close(died);
    way.closed = false;
    expect(await right.closed).toMatchObject({ message: "it ended the connection" });
  });

  test("that was closed while it was cut is refused to who dials again", async () => {
    const { left, right, way } = await pair({ network: { explainMs: 10 } });
    way.closed = true;
    right.close(died);
    way.closed = false;
    expect(await left.closed).toMatchObject({ message: "the listener has ended the connection" });
  });

  test("to somebody who never listens is lost as well, and sends nothing into nowhere for ever", async () => {
    const nowhere = new Cuttable(1);
    const port = await nowhere.listen();
    nowhere.end();
    const link = dialLater(async () => ({ place: { host: "127.0.0.1", port }, token }), hello, {
      peerId: "nobody",
      explain: never,
      network: { reconnectTimeoutMs: 50, explainMs: 10 },
    });
    link.send(numbered(1));
    expect(await link.closed).toMatchObject({
      message: `nobody could not be reached for 0.05 s: connect ECONNREFUSED 127.0.0.1:${port}`,
    });
    expect(link.isOpen).toBe(false);
  });

  test("to a peer that nobody listens for ends when that peer is known to be gone, at whatever time", async () => {
    const nowhere = new Cuttable(1);
    const port = await nowhere.listen();
    nowhere.end();
    const address = { place: { host: "127.0.0.1", port }, token };
    const { promise: gone, resolve } = Promise.withResolvers<DeathCause>();
    const times = { reconnectTimeoutMs: 2 ** 30, explainMs: 2 ** 30 };
    const options = { peerId: "nobody", network: times, mayBeBusy: true };
    const before = dial(address, hello, { ...options, explain: async () => died });
    await expect(before).rejects.toThrow("nobody is gone");
    const later = dial(address, hello, { ...options, explain: () => gone });
    resolve(died);
    await expect(later).rejects.toThrow("nobody is gone");
  });

  test("to a name none of whose addresses is reached says why, for each", async () => {
    const nowhere = new Cuttable(1);
    const port = await nowhere.listen();
    nowhere.end();
    named((_, answer) => answer(null, ["::1", "127.0.0.1"].map(found)));
    const link = dialLater(async () => ({ place: { host: "two.example", port }, token }), hello, {
      peerId: "nobody",
      explain: never,
      network: { reconnectTimeoutMs: 50, explainMs: 10 },
    });
    const { message } = await link.closed;
    expect(message).toContain("nobody could not be reached for 0.05 s: connect E");
    expect(message).toContain(` ::1:${port}`);
    expect(message).toContain(`; connect ECONNREFUSED 127.0.0.1:${port}`);
  });

  test.each([
    [["ECONNREFUSED", "ECONNREFUSED"], true],
    [["ECONNREFUSED", "ETIMEDOUT"], false],
    [["EADDRNOTAVAIL", "ECONNREFUSED"], false],
  ])("is lost where that is proved at each address of its peer: %j", (codes, isLost) => {
    const failures = codes.map((code) => Object.assign(new Error("x"), { code }));
    // Node gives it the code of the first.
    const failure = Object.assign(new AggregateError(failures), { code: codes[0] ?? "" });
    expect(provesLoss(failure, false)).toBe(isLost);
  });

  test("looks the name of its peer up once at a time, however many connections want it", () => {
    const asked: [string, DnsAnswer][] = [];
    named((name, answer) => asked.push([name, answer]));
    const got: unknown[] = [];
    const options = { all: true };
    const want = (name: string): void =>
      joinedLookup(name, options, (error, all) => got.push(error ?? all));
    for (const name of ["a.example", "b.example", "a.example", "a.example"]) want(name);
    expect(asked.map(([name]) => name)).toEqual(["a.example", "b.example"]);
    expect(["a.example", "b.example", "example"].map(isLookingUp)).toEqual([true, true, false]);
    const [[, answerA], [, answerB]] = asked as [[string, DnsAnswer], [string, DnsAnswer]];
    answerA(null, [found("10.0.0.7")]);
    expect(got).toEqual([1, 2, 3].map(() => [found("10.0.0.7")]));
    const failure = new Error("the name server is silent");
    answerB(failure, []);
    expect(got.at(-1)).toBe(failure);
    expect(["a.example", "b.example"].map(isLookingUp)).toEqual([false, false]);
    // What was found is asked for again: addresses change.
    want("a.example");
    expect(asked).toHaveLength(3);
    asked[2]?.[1](null, []);
  });

  test("begins no further attempt while the name of its peer is being looked up", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    ends.push(() => vi.useRealTimers());
    let isNaming = true;
    let attempts = 0;
    const over = new AbortController();
    const attempt = (): Promise<never> => {
      attempts += 1;
      return new Promise(() => undefined);
    };
    const first = firstOf({ attempt, isNaming: () => isNaming }, undefined, over.signal);
    for (let count = 0; count < 4; count++) await vi.advanceTimersByTimeAsync(1000);
    expect(attempts).toBe(1);
    isNaming = false;
    for (let count = 0; count < 2; count++) await vi.advanceTimersByTimeAsync(1000);
    expect(attempts).toBeGreaterThan(1);
    over.abort();
    await expect(first).rejects.toThrow("not wanted any more");
  });

  test("to somebody who is reached and says nothing for longer than a cut may last is made when that connection is cut", async () => {
    const network = { reconnectTimeoutMs: 700 };
    const place = { host: "127.0.0.1", port: 0 };
    const held: Socket[] = [];
    // It takes connections, as the system does for a thread that computes.
    const busy = createServer((socket) => void held.push(socket.on("error", () => undefined)));
    busy.listen(place);
    await once(busy, "listening");
    const { port } = busy.address() as AddressInfo;
    const address = { place: { ...place, port }, token };
    const dialling = dial(address, hello, {
      peerId: "the listener",
      explain: never,
      network,
      mayBeBusy: true,
    });
    dialling.catch(() => undefined);
    // The second one comes 800 ms after the first.
    while (held.length < 2) await once(busy, "connection");
    busy.close();
    for (const socket of held) socket.resetAndDestroy();
    await once(busy, "close");
    const listener = await listen({
      address,
      explain: never,
      onChannel: () => undefined,
      network,
    });
    ends.push(() => listener.close());
    const link = await dialling;
    ends.push(() => link.close(died));
    expect(link.isOpen).toBe(true);
  });

  test("to somebody with another token ends at once, and says that", async () => {
    const { port } = await pair();
    const wrong = { place: { host: "127.0.0.1", port }, token: "guess" };
    const link = dialLater(async () => wrong, hello, {
      peerId: "the listener",
      explain: never,
      network: { reconnectTimeoutMs: 600_000, explainMs: 10 },
    });
    expect(await link.closed).toMatchObject({
      message: "the listener did not accept the token, or has another one",
      error: { code: "AUTHENTICATION" },
    });
  });

  test("whose heartbeat breaks goes on over another connection, on both sides", async () => {
    const { left, right, way } = await pair();
    left.onMessage(() => undefined);
    const arrived = new Promise<number>((resolve) => {
      right.onMessage((batch) => resolve(numberOf(batch)));
    });
    // The first one that was made.
    way.cutOldest();
    await expect.poll(() => [left.connection.cuts, right.connection.cuts]).toEqual([1, 1]);
    left.send(numbered(7));
    expect(await arrived).toBe(7);
    // Again a heartbeat first.
    expect(way.connections).toBe(4);
  });

  test("sends nothing, and is not known where it was dialled, before its heartbeat is there", async () => {
    const accepted = vi.fn<() => void>();
    const listener = await listen({
      address: { place: { host: "127.0.0.1", port: 0 }, token },
      explain: never,
      onChannel: accepted,
    });
    ends.push(() => listener.close());
    const { port } = listener.address as AddressInfo;
    const early = await introduced(port, { linkId: "way-1" });
    expect(early.welcome).toEqual({ isUnheld: true });
    await early.closed;
    const heartbeat = await introduced(port, { heartbeatOf: "way-1", isNew: true });
    expect([heartbeat.welcome, accepted.mock.calls]).toEqual([{}, []]);
    const wire = await introduced(port, { linkId: "way-1" });
    expect(wire.welcome).toEqual({});
    expect(accepted).toHaveBeenCalledOnce();
    heartbeat.send(numbered(0));
    await wire.closed;
    const late = await introduced(port, { linkId: "way-1", received: 0 });
    expect(late.welcome).toEqual({ isUnheld: true });
  });

  test("makes its heartbeat again that only the other side has lost", async () => {
    const { left, right } = await pair();
    left.onMessage(() => undefined);
    const arrived = new Promise<number>((resolve) => {
      right.onMessage((batch) => resolve(numberOf(batch)));
    });
    right.connection.lostBeside();
    left.send(numbered(7));
    expect(await arrived).toBe(7);
    expect(right.connection.isHeldBeside).toBe(true);
  });

  test("that is cut is waited for while its dialler has a heartbeat, which proves that it lives, and then as long as at first", async () => {
    const { port, link, tick } = await cutByTest();
    await tick(900);
    const heartbeat = await introduced(port, { heartbeatOf: "way-1" });
    // A dialler that computes, for many times as long as a cut may last.
    await tick(20_500);
    expect(link.isOpen).toBe(true);
    heartbeat.close(died);
    const endsAt = performance.now();
    while (link.isOpen) {
      // The listener hears of it over the socket, too.
      await new Promise((resolve) => setImmediate(resolve));
      await tick(50);
    }
    expect(performance.now() - endsAt).toBeGreaterThanOrEqual(1000);
    expect(await link.closed).toMatchObject({ message: "dialler could not be reached for 1 s" });
  });

  test("that is cut is not waited for longer than half an hour, whatever its dialler's heartbeat says", async () => {
    const { port, link, tick } = await cutByTest();
    const heartbeat = await introduced(port, { heartbeatOf: "way-1" });
    await tick(29 * 60_000);
    expect([link.isOpen, heartbeat.isOpen]).toEqual([true, true]);
    await tick(2 * 60_000);
    expect(await link.closed).toMatchObject({ kind: "unreachable" });
  });

  test("takes no heartbeat of a link that it does not know, and says so; ends one that speaks, and its own connection with it", async () => {
    const { port } = await pair();
    const ofNothing = await introduced(port, { heartbeatOf: "way-1" });
    expect(ofNothing.welcome).toEqual({ isUnknown: true });
    await ofNothing.closed;
    const heartbeat = await introduced(port, { heartbeatOf: "way-1", isNew: true });
    const wire = await introduced(port, { linkId: "way-1" });
    heartbeat.send(numbered(0));
    await Promise.all([heartbeat.closed, wire.closed]);
  });

  test("is not taken over by who knows its name and not the token, nor by who asks for what was never sent", async () => {
    const { left, right, port } = await pair();
    await expect(introduced(port, { linkId: "way-1", received: 0 }, "guess")).rejects.toMatchObject(
      { code: "AUTHENTICATION" },
    );
    const unknown = await introduced(port, { linkId: "way-1", received: 0 });
    expect(unknown.welcome).toEqual({ isUnknown: true });
    const arrived = new Promise<number>((resolve) => {
      right.onMessage((batch) => resolve(numberOf(batch)));
    });
    left.send(numbered(42));
    expect(await arrived).toBe(42);
  });
});
