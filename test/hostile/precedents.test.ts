/**
 * What went wrong elsewhere, each as a test of its name: an agent and a host in processes of their own, peers that write what they like, and an actor that
 * goes on counting meanwhile.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startAgent } from "@rayling/cluster";
import * as ray from "@rayling/core";
import { type Channel, listen } from "@rayling/core/cluster";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { Attacked, type AttackedClass } from "../fixtures/attacked.ts";
import { Doors } from "../fixtures/doors.ts";
import {
  body,
  frame,
  messages,
  nested,
  pack,
  type Place,
  RawPeer,
  residentBytes,
  settledSockets,
  sockets,
  special,
  u32,
  word,
} from "../fixtures/wire.ts";

const doors = new Doors();

interface Attackable {
  readonly place: Place;
  readonly token: string;
  readonly pid: number;
}

let child: ChildProcess;
let agent: Attackable;
let host: Attackable;
let actor: ray.ActorHandle<AttackedClass>;
let target: string;
let session: ray.SessionInfo;
let sum = 0;
const peers: RawPeer[] = [];

beforeAll(async () => {
  child = spawn(
    process.execPath,
    [fileURLToPath(new URL("../fixtures/agent.ts", import.meta.url))],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  const address = line.toString().trim();
  const { hostname, port, username } = new URL(address);
  agent = { place: { host: hostname, port: Number(port) }, token: username, pid: child.pid ?? 0 };
  session = await ray.init({ numCpus: 0, nodes: [address], metricsPort: 0 });
  actor = Attacked.remote();
  const pid = await ray.get(actor.pid.remote());
  target = await ray.get(actor.target.remote());
  host = { ...(await doors.of(pid)), pid };
  socketsBefore = await settledSockets(agent.pid, host.pid);
});
afterAll(async () => {
  await ray.shutdown();
  child.kill("SIGKILL");
});

let socketsBefore: readonly number[];
/** Whatever was tried, the same host goes on counting, and nobody's connection is left. */
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.end();
  expect(await ray.get(actor.addHonestly.remote(1))).toBe(++sum);
  expect(await ray.get(actor.pid.remote())).toBe(host.pid);
  await expect
    .poll(() => [sockets(agent.pid).length, sockets(host.pid).length], { timeout: 30_000 })
    .toEqual(socketsBefore);
});

function stranger({ place }: Attackable): RawPeer {
  const peer = new RawPeer(place);
  peers.push(peer);
  return peer;
}

let names = 0;
/** Who has the token. */
async function guest(at: Attackable, words: object = {}): Promise<RawPeer> {
  for (let tries = 1; ; tries++) {
    const peer = stranger(at);
    const isLetIn = await peer.introduce(at.token, { peerId: `guest-${names++}`, ...words });
    // Who is held up in the handshake is hung up on.
    if (isLetIn || tries === 3) {
      expect(isLetIn).toBe(true);
      return peer;
    }
  }
}

const noArguments = body(pack([]));
/** The next answer to a call: kind, number, and the bytes behind. */
async function answer(
  peer: RawPeer,
): Promise<{ kind: number; id: number; text: string } | undefined> {
  const bytes = await peer.next();
  if (bytes === undefined) return undefined;
  return { kind: bytes[0] as number, id: bytes.readUInt32LE(1), text: bytes.toString("latin1") };
}
const kinds = { result: 3, failure: 4, gone: 8, absent: 14 } as const;

/** A call to the actor as somebody else makes it. */
const call = (method: string, args: Uint8Array = noArguments, id = 0): Buffer =>
  frame(Buffer.concat([messages.route(300, target, method), messages.call(id, 300, args)]));

/** Rejects when a peer that should be hung up on is not. */
async function hungUpOn(peer: RawPeer): Promise<void> {
  await peer.closed;
  expect(peer.isOpen).toBe(false);
}

/** What comlink sends for a call of a method. */
const controlCall = (path: readonly string[], ...args: readonly unknown[]): Buffer =>
  frame(
    pack({
      id: "1",
      type: "APPLY",
      path,
      argumentList: args.map((value) => ({ type: "RAW", value })),
    }),
  );

describe("ShadowRay, CVE-2023-48022: an API without authentication runs anything for anybody", () => {
  test("who has no token starts nothing, is told nothing and reaches no actor", async () => {
    const order = { identity: { hostId: "mine" }, runtimeEnv: null, moduleUrl: null };
    for (const at of [agent, host]) {
      for (const bytes of [
        controlCall(["launch"], order),
        call("addHonestly", body(pack([1000]))),
      ]) {
        const peer = stranger(at);
        peer.send(bytes);
        await hungUpOn(peer);
        // "I cannot read you", which says nothing about anything, or nothing at all.
        expect(peer.unread.every((byte) => byte === 0)).toBe(true);
      }
      const guess = stranger(at);
      expect(await guess.introduce("guess", { peerId: "me" })).toBe(false);
    }
  });
});

/** A request as it is, with the headers of whoever sends it. */
function ask(method: string, path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port: session.metricsPort, method, path, headers },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    sent.on("error", reject);
    sent.end();
  });
}

describe("CVE-2025-62593: an API on the loopback is reached from a browser, by a name that points there", () => {
  test("what a browser sends is refused, whoever it says it is", async () => {
    const { metricsPort, metricsToken } = session;
    const name = `127.0.0.1:${metricsPort}`;
    const authorization = `Bearer ${metricsToken}`;
    expect(await ask("GET", "/metrics", { host: name, authorization })).toBe(200);
    const evil = { host: `evil.example:${metricsPort}`, authorization };
    expect(await ask("GET", "/metrics", evil)).toBe(421);
    for (const headers of [
      { host: name, authorization, origin: "http://evil.example" },
      { host: name, authorization, origin: "null" },
      { host: name, authorization, "sec-fetch-site": "cross-site", "user-agent": "curl/8" },
      { host: name, authorization, "sec-fetch-site": "none" },
    ]) {
      expect(await ask("GET", "/metrics", headers)).toBe(403);
    }
  });

  test("an agent and a host hang up on what a browser says", async () => {
    for (const at of [agent, host]) {
      const peer = stranger(at);
      peer.send(
        Buffer.from("POST /api/jobs/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"),
      );
      await hungUpOn(peer);
    }
  });
});

test("CVE-2026-27482: the guard forgets a verb; here it stands before all of them", async () => {
  const { metricsPort, metricsToken } = session;
  const name = `127.0.0.1:${metricsPort}`;
  for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]) {
    const authorization = `Bearer ${metricsToken}`;
    expect(
      await ask(method, "/metrics", { host: name, origin: "http://evil.example", authorization }),
    ).toBe(403);
    expect(await ask(method, "/metrics", { host: name })).toBe(401);
    if (method !== "GET")
      expect(await ask(method, "/metrics", { host: name, authorization })).toBe(405);
  }
});

test("GHSA-gx77-xgc2-4888: authentication is off unless it is asked for; here nobody can turn it off", async () => {
  const plain = await startAgent();
  const { username, hostname, port } = new URL(plain.address);
  expect(username.length).toBeGreaterThanOrEqual(32);
  const peer = new RawPeer({ host: hostname, port: Number(port) });
  expect(await peer.introduce("", { peerId: "me" })).toBe(false);
  await plain.close();
  expect((await fetch(`http://127.0.0.1:${session.metricsPort}/metrics`)).status).toBe(401);
});

describe("actor-ts#964: no credential, all interfaces, system actors in reach", () => {
  test("an agent listens on the loopback unless it is told otherwise", async () => {
    const plain = await startAgent();
    expect(new URL(plain.address).hostname).toBe("127.0.0.1");
    await plain.close();
  });

  test("who has a host's token may call its actors; there is nothing else to call", async () => {
    const peer = await guest(host);
    for (const [index, other] of [
      "",
      "system",
      "/system",
      "driver",
      "control",
      `${target}~1`,
    ].entries()) {
      peer.send(
        frame(
          Buffer.concat([
            messages.route(300, other, "describe"),
            messages.call(index, 300, noArguments),
          ]),
        ),
      );
      expect(await answer(peer)).toMatchObject({ kind: kinds.absent, id: index });
    }
  });
});

describe("actor-ts#563: an unchecked number in a frame is thrown in the callback of the socket, and ends the process", () => {
  test.each<[string, () => Uint8Array]>([
    ["an unknown kind", () => messages.bare(99, 1)],
    ["an unknown route", () => messages.call(1, 77, noArguments)],
    ["a message that stops in the middle", () => messages.call(1, 300, noArguments).subarray(0, 9)],
    ["a count of thirty million", () => Buffer.concat([messages.bare(7, 1), u32(30_000_000)])],
    ["a shape that is none", () => messages.route(300, target, "echo", "nonsense")],
    [
      "a number of a call beyond all",
      () =>
        Buffer.concat([
          messages.route(300, target, "echo"),
          messages.call(2 ** 31, 300, noArguments),
        ]),
    ],
  ])("%s ends the connection that it came by", async (_name, bytes) => {
    const peer = await guest(host);
    peer.send(frame(bytes()));
    await hungUpOn(peer);
  });

  test("so does a word that nobody says", async () => {
    for (const bytes of [
      Buffer.of(9),
      Buffer.of(1, 255, 255, 255, 255, 255, 255),
      Buffer.alloc(64),
    ]) {
      const peer = await guest(host, { linkId: "a" });
      peer.send(word(bytes));
      await hungUpOn(peer);
    }
  });

  test("a task whose key is none is gone, as no worker has it", async () => {
    const peer = await guest(host);
    for (const [id, key] of ["", "{", "null", "5", '{"moduleUrl":1}'].entries()) {
      peer.send(
        frame(
          Buffer.concat([messages.route(300, "task", key), messages.call(id, 300, noArguments)]),
        ),
      );
      expect(await answer(peer)).toMatchObject({ kind: kinds.gone, id });
    }
  });
});

test("actor-ts#588: a frame that comes in small pieces is copied whole with each of them", async () => {
  const accepted = Promise.withResolvers<Channel>();
  const address = { place: { host: "127.0.0.1", port: 0 }, token: "secret" };
  const listener = await listen({
    address,
    explain: () => new Promise(() => undefined),
    onChannel: (channel) => accepted.resolve(channel),
  });
  const { port } = listener.address as { port: number };
  const peer = new RawPeer({ host: "127.0.0.1", port });
  expect(await peer.introduce("secret", { peerId: "me" })).toBe(true);
  const channel = await accepted.promise;
  const size = 16 * 1024 ** 2;
  const arrived = new Promise<number>((resolve) =>
    channel.onMessage(({ bytes }) => resolve(bytes.length)),
  );
  let copied = 0;
  const concat = vi.spyOn(Buffer, "concat");
  const set = vi.spyOn(Uint8Array.prototype, "set");
  try {
    const bytes = Buffer.alloc(8 + size, 1);
    bytes.writeUInt32LE(size, 0);
    bytes.writeUInt32LE(0, 4);
    for (let at = 0; at < bytes.length; at += 1400) {
      const part = bytes.subarray(at, at + 1400);
      await new Promise((resolve) => peer.socket.write(part, resolve));
    }
    expect(await arrived).toBe(size);
    for (const [list] of concat.mock.calls) for (const { length } of list) copied += length;
    for (const [source] of set.mock.calls) copied += source.length;
    // Once into its place, and once more for each time that the place doubled.
    expect(copied).toBeGreaterThan(0);
    expect(copied).toBeLessThan(4 * size);
  } finally {
    concat.mockRestore();
    set.mockRestore();
    peer.end();
    channel.close({ kind: "shutdown", message: "the test is over" });
    listener.close();
  }
});

describe("actor-ts#618: a value is nested as deep as its sender likes", () => {
  test.each([[1000], [100_000], [1_000_000]])(
    "arguments of %i lists in each other",
    async (depth) => {
      const peer = await guest(host);
      const args = Buffer.concat([Buffer.of(0x91), nested(depth)]);
      // What is big travels beside the message.
      const inBand = depth < 60_000;
      const bytes = inBand
        ? call("echo", body(args))
        : frame(
            Buffer.concat([
              messages.route(300, target, "echo"),
              messages.call(0, 300, u32(args.length, 0, 0, 0)),
            ]),
            [args],
          );
      peer.send(bytes);
      const answered = await answer(peer);
      expect(answered).toMatchObject({ kind: kinds.failure, id: 0 });
      // Of a thousand, the answer is refused: the actor has it, and may not send it on.
      expect(answered?.text).toMatch(
        depth > 2500 ? /nested deeper than 2500/ : /nested deeper than 500/,
      );
    },
  );

  test("a request to an agent ends the connection that it came by", async () => {
    const peer = await guest(agent, { linkId: "a" });
    peer.send(frame(nested(100_000)));
    await hungUpOn(peer);
  });
});

describe("actor-ts#587: the decoder throws where nobody catches", () => {
  test.each<[string, Uint8Array, number?]>([
    ["no bytes", Buffer.alloc(0)],
    ["what is no value", Buffer.of(0xc7, 1, 99, 1)],
    ["a value that stops in the middle", Buffer.of(0x92, 0xc0)],
    ["two values", Buffer.of(0xc0, 0xc0)],
    ["a pointer to nothing", Buffer.of(0xd6, 0x70, 0, 0, 0, 9)],
    ["a record whose keys are a number", Buffer.of(0xd4, 0x72, 0x40, 1)],
    ["arguments that are no list", pack({ length: 1e9 })],
    ["a ref that its header does not count", special(["reference", ["object", "x", 1, "y"]])],
    ["a handle to nobody", special(["reference", ["actor", null]]), 1],
    ["a class that nobody registered", special(["class", "__proto__", 1])],
  ])("arguments that are %s fail their own call", async (_name, bytes, references = 0) => {
    const peer = await guest(host);
    peer.send(call("echo", body(bytes, references)));
    expect(await answer(peer)).toMatchObject({ kind: kinds.failure, id: 0 });
    peer.send(call("echo", body(pack([5])), 1));
    expect(await answer(peer)).toMatchObject({ kind: kinds.result, id: 1 });
  });

  test("what stands for a value and stands for nothing fails its call, and its host lives", async () => {
    const peer = await guest(host);
    const standIns = [
      pack(null),
      pack({ kept: 5, byteLength: 1 }),
      pack({ kept: "x" }),
      Buffer.of(0xc7, 9),
    ];
    for (const [id, value] of standIns.entries()) {
      const located = Buffer.concat([u32(value.length, 2 ** 30, 0), value]);
      const args = body(pack([1]));
      peer.send(
        frame(
          Buffer.concat([
            messages.route(300, target, "echo"),
            messages.call(id, 300, args, [located]),
          ]),
        ),
      );
      expect(await answer(peer)).toMatchObject({ kind: kinds.failure, id });
    }
  });

  test("an agent hangs up on who sends what it cannot read", async () => {
    for (const bytes of [
      Buffer.of(0xc1, 0xc1),
      Buffer.from("nonsense"),
      Buffer.of(0xd6, 0x70, 0, 0, 0, 9),
    ]) {
      const peer = await guest(agent, { linkId: "a" });
      peer.send(frame(bytes));
      await hungUpOn(peer);
    }
  });
});

test("actor-ts#590: a token stands in an error", async () => {
  const wrong = `rayling://${"x".repeat(43)}@127.0.0.1:${agent.place.port}`;
  const { RemoteNode } = await import("@rayling/cluster");
  const node = new RemoteNode(wrong, {
    driverId: "driver-x",
    network: { reconnectTimeoutMs: 100 },
  });
  const error = (await node.offer.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )) as Error;
  expect(error).toBeInstanceOf(Error);
  for (let one: unknown = error; one instanceof Error; one = one.cause) {
    expect(`${one.message} ${one.stack}`).not.toContain("xxxx");
    expect(`${one.message} ${one.stack}`).not.toContain(agent.token);
  }
});

test("actor-ts#591: a setting is documented and read by nobody", () => {
  const index = new URL("../../packages/cluster/src/index.ts", import.meta.url);
  const read = (file: string): string => readFileSync(new URL(file, index), "utf8");
  expect(read("index.ts")).toContain("agent/agent-options.ts");
  const declared = /export interface \w+Options[^{]*\{[\s\S]*?\n\}/g;
  const settings = ["agent/agent-options.ts", "agent/worker-ports.ts"].map((file) =>
    [...read(file).matchAll(declared)].flatMap(([text]) =>
      [...text.matchAll(/^  readonly (\w+)\??:/gm)].map((match) => match[1] as string),
    ),
  );
  expect(settings.every(({ length }) => length > 1)).toBe(true);
  const rest = ["agent/agent.ts", "agent/worker-ports.ts"].map((file) =>
    read(file).replaceAll(declared, ""),
  );
  const unread = settings.flat().filter((name) => {
    const taken = new RegExp(
      `options\\.${name}\\b|\\{[^}]*\\b${name}\\b[^}]*\\}(: \\w+Options| = options)`,
    );
    return !rest.some((text) => taken.test(text));
  });
  expect(unread).toEqual([]);
});

describe("actor-ts#750: the size of a frame is looked at when all of it is there", () => {
  test("before the peer is known, 4 KiB are too much, and are not waited for", async () => {
    for (const at of [agent, host]) {
      const peer = stranger(at);
      peer.send(u32(4097, 0));
      await hungUpOn(peer);
    }
  });

  test("and afterwards more than the limit, of which nothing need come", async () => {
    for (const head of [
      u32(2 ** 30 + 1, 0),
      u32(1, 2 ** 20 + 1),
      Buffer.concat([u32(1, 1), Buffer.alloc(6, 255)]),
    ]) {
      const peer = await guest(host);
      peer.send(head);
      await hungUpOn(peer);
    }
  });
});

test("actor-ts#593: whatever peers report is kept", async () => {
  const told = new Promise<Error>((resolve) => {
    process.on("warning", function heard(warning) {
      if (!warning.message.includes("combinations of metrics")) return;
      process.off("warning", heard);
      resolve(warning);
    });
  });
  await ray.get(actor.report.remote(100_500));
  const lines = async (): Promise<number> =>
    (await ray.metrics.text()).split("\n").filter((line) => line.includes("flood_total{")).length;
  // A host that is slow to answer is not waited for.
  await expect.poll(lines, { timeout: 60_000, interval: 500 }).toBeGreaterThan(90_000);
  expect(await lines()).toBeLessThanOrEqual(100_000);
  expect((await told).message).toContain("more than 100000 combinations of metrics and tags");
});

test("wolverine#2843: four bytes of length take gigabytes of memory", async () => {
  const before = residentBytes(host.pid);
  for (let count = 0; count < 50; count++) {
    const peer = await guest(host);
    peer.send(Buffer.concat([u32(2 ** 30, 0), Buffer.alloc(100)]));
    const beside = await guest(host);
    beside.send(Buffer.concat([u32(1, 1), Buffer.of(0, 0, 0, 0, 8, 0), Buffer.alloc(100)]));
  }
  // It has read all of that when it answers this.
  const last = await guest(host);
  last.send(call("echo"));
  expect(await answer(last)).toMatchObject({ kind: kinds.result });
  expect(residentBytes(host.pid) - before).toBeLessThan(100e6);
});

describe("capnweb: what is no public method of the class is called", () => {
  test.each([
    "constructor",
    "__proto__",
    "prototype",
    "then",
    "secret",
    "#hidden",
    "accessor",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "__defineGetter__",
    "__lookupGetter__",
    "__ray_shutdown__",
    "",
  ])("%s is no method", async (method) => {
    const peer = await guest(host);
    peer.send(call(method));
    const answered = await answer(peer);
    expect(answered).toMatchObject({ kind: kinds.failure });
    expect(answered?.text).toContain("has no method");
  });

  test("and a field and a getter are named as what they are, and not run", async () => {
    for (const [method, kind] of [
      ["secret", "field"],
      ["accessor", "getter"],
    ] as const) {
      const peer = await guest(host);
      peer.send(call(method));
      expect((await answer(peer))?.text).toContain(`${method} is a ${kind}`);
    }
  });

  test("nor can an agent be asked for more than it offers", async () => {
    const paths = [
      ["constructor"],
      ["constructor", "constructor"],
      ["describe", "call"],
      ["__proto__"],
      [],
    ];
    for (const path of paths) {
      const peer = await guest(agent, { linkId: "a" });
      peer.send(controlCall(path));
      await hungUpOn(peer);
    }
  });
});

describe("code that a peer names, or sends, is loaded", () => {
  const trace = join(tmpdir(), `rayling-precedent-${process.pid}`);
  const code = `data:text/javascript,import("node:fs").then((fs)=>fs.writeFileSync(${JSON.stringify(trace)},""))`;
  const key = { moduleUrl: code, exportName: "x", name: "x", assignment: {} };

  test("not as a task", async () => {
    const peer = await guest(host);
    for (const [id, moduleUrl] of [code, "node:fs", "fs", "http://127.0.0.1/x.js"].entries()) {
      const method = JSON.stringify({ ...key, moduleUrl });
      peer.send(
        frame(
          Buffer.concat([messages.route(300, "task", method), messages.call(id, 300, noArguments)]),
        ),
      );
      const answered = await answer(peer);
      expect(answered).toMatchObject({ kind: kinds.failure, id });
      expect(answered?.text).toContain("not in a file");
    }
    expect(existsSync(trace)).toBe(false);
  });

  test("not as a function for __ray_call__", async () => {
    const peer = await guest(host);
    const data = special(["reference", ["function", { key, isGenerator: false, options: {} }]]);
    peer.send(call("__ray_call__", body(Buffer.concat([Buffer.of(0x91), data]), 1)));
    const answered = await answer(peer);
    expect(answered).toMatchObject({ kind: kinds.failure });
    expect(existsSync(trace)).toBe(false);
  });
});

test("a key __proto__ changes what all objects have", async () => {
  const peer = await guest(host);
  // JSON keeps the key as one of the object's own.
  const value = JSON.parse(
    '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  ) as object;
  peer.send(call("echo", body(pack([value]))));
  expect(await answer(peer)).toMatchObject({ kind: kinds.result });
  peer.send(call("polluted", noArguments, 1));
  expect((await answer(peer))?.text).toContain("has no method");
  const [plain] = (await ray.get(actor.echo.remote([{}]))) as [{ polluted?: number }];
  expect(plain.polluted).toBeUndefined();
});

describe("what was heard is said again", () => {
  test("a handshake that was good once is none", async () => {
    for (const at of [agent, host]) {
      const first = await guest(at);
      for (const all of [true, false]) {
        const again = stranger(at);
        for (const bytes of all ? [Buffer.concat(first.said)] : first.said) {
          again.send(bytes);
          if (!all) await again.next();
        }
        await hungUpOn(again);
      }
    }
  });

  test("nor does a call that was heard run once more", async () => {
    const first = await guest(host);
    first.send(call("addHonestly", body(pack([0]))));
    expect(await answer(first)).toMatchObject({ kind: kinds.result });
    const again = stranger(host);
    again.send(Buffer.concat(first.said));
    await hungUpOn(again);
  });

  test("a call with the number of one that is under way ends the connection", async () => {
    const peer = await guest(host);
    const one = messages.call(7, 300, noArguments);
    peer.send(frame(Buffer.concat([messages.route(300, target, "echoLater"), one, one])));
    await hungUpOn(peer);
  });
});

describe("who has the token sends more than its credit allows", () => {
  /** As much as goes in a frame itself. */
  const big = body(pack(["x".repeat(60_000)]));

  /** An actor that is busy, in a process of its own. */
  async function busy(): Promise<{
    readonly at: Attackable;
    readonly name: string;
    readonly end: () => Promise<void>;
  }> {
    const one = Attacked.options({ maxConcurrency: 1 }).remote();
    const pid = await ray.get(one.pid.remote());
    const name = await ray.get(one.target.remote());
    return { at: { ...(await doors.of(pid)), pid }, name, end: () => ray.kill(one) };
  }

  test("calls that nobody answers are taken up to a bound of bytes, and then the connection ends", async () => {
    const { at, name, end } = await busy();
    const peer = await guest(at);
    peer.send(frame(messages.route(300, name, "stay")));
    // Of 16 MiB.
    for (let id = 0; id < 250; id++) peer.send(frame(messages.call(id, 300, big)));
    const nobody = [messages.route(301, "nobody", "m"), messages.call(999, 301, noArguments)];
    peer.send(frame(Buffer.concat(nobody)));
    expect(await answer(peer)).toMatchObject({ kind: kinds.absent, id: 999 });
    for (let id = 250; id < 300; id++) peer.send(frame(messages.call(id, 300, big)));
    await hungUpOn(peer);
    await end();
  });

  test("calls that are cancelled in the mailbox leave nothing there", async () => {
    const { at, name, end } = await busy();
    const peer = await guest(at);
    peer.send(frame(messages.route(300, name, "stay")));
    peer.send(frame(messages.call(0, 300, noArguments)));
    const before = residentBytes(at.pid);
    const one = frame(Buffer.concat([messages.call(1, 300, big), messages.cancel(1)]));
    for (let round = 0; round < 100; round++) {
      peer.send(one);
      for (let count = 1; count < 100; count++) peer.socket.write(one);
      peer.said.length = 0;
      // Several answers come in one frame: each is five bytes.
      for (let bytes = 0; bytes < 500;) bytes += (await peer.next())?.length ?? 500;
    }
    expect(peer.isOpen).toBe(true);
    expect(residentBytes(at.pid) - before).toBeLessThan(300e6);
    await end();
  });
});
