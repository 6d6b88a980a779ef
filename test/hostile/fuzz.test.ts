/**
 * A million frames that are none, from one seed: malformed, cut off, oversized, deeply nested, slow and replayed, with and without a token, to an agent and
 * to a host in processes of their own, while the driver goes on counting with an actor on that host.
 *
 * RAYLING_FUZZ_SEED and RAYLING_FUZZ_FRAMES choose another run; a failure names its seed. The model is what was counted: whatever else is said, the actor's
 * answers are those of honest calls alone.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { enableNodes } from "@rayling/cluster";
import * as ray from "@rayling/core";
import { afterAll, expect, test } from "vitest";
import { Attacked } from "../fixtures/attacked.ts";
import {
  body,
  doorOf,
  frame,
  messages,
  nested,
  pack,
  part,
  type Place,
  RawPeer,
  residentBytes,
  settledSockets,
  sockets,
  special,
  u32,
  word,
} from "../fixtures/wire.ts";
import { seededRandom } from "../servers/seeded.ts";

const seed = Number(process.env["RAYLING_FUZZ_SEED"] ?? 20_261_122);
const frameCount = Number(process.env["RAYLING_FUZZ_FRAMES"] ?? 20_000);
/** Attackers at the same time. */
const lanes = 16;
/** Beside those, that send a byte now and then. */
const slowLanes = 8;
/** The bound of memory that SECURITY.md states, of each of the two. */
const maxBytes = 500e6;

enableNodes();

interface Attackable {
  readonly place: Place;
  readonly token: string;
  readonly pid: number;
}

/** Makes what an attacker says. */
class Attack {
  readonly #random: () => number;
  readonly #target: string;
  readonly #trace: string;
  /** Bytes of handshakes and frames that were good once. */
  readonly heard: Buffer[] = [];

  constructor(random: () => number, target: string, trace: string) {
    this.#random = random;
    this.#target = target;
    this.#trace = trace;
  }

  pick(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #one<T>(list: readonly T[]): T {
    return list[this.pick(list.length)] as T;
  }

  #bytes(most: number): Buffer {
    return Buffer.from(Array.from({ length: this.pick(most) }, () => this.pick(256)));
  }

  /** Numbers that are looked at too late, or not at all. */
  #number(): number {
    return this.#one([
      0,
      1,
      7,
      255,
      65_536,
      2 ** 20,
      2 ** 30,
      2 ** 31 - 1,
      2 ** 31,
      2 ** 32 - 1,
      this.pick(2 ** 32),
    ]);
  }

  #text(): string {
    return this.#one([
      "",
      "x",
      "task",
      "__proto__",
      "constructor",
      this.#target,
      `${this.#target}:0`,
      "driver:1",
      "\0",
      "ä".repeat(this.pick(200)),
    ]);
  }

  #method(): string {
    const code = `data:text/javascript,import("node:fs").then((fs)=>fs.writeFileSync("${this.#trace}",""))`;
    const key = { moduleUrl: code, ordinal: 0, name: "x", assignment: {} };
    return this.#one([
      "echo",
      "echoLater",
      "secret",
      "constructor",
      "__ray_call__",
      "__ray_ready__",
      "then",
      JSON.stringify(key),
      "{",
      this.#text(),
    ]);
  }

  #value(): Buffer {
    const dice = this.pick(12);
    if (dice === 0) return this.#bytes(300);
    if (dice === 1) return nested(1 + this.pick(60_000));
    if (dice === 2)
      return Buffer.concat([
        Buffer.of(this.#one([0xdd, 0xdf, 0xdb, 0xc6, 0xc9])),
        u32(this.#number()),
        this.#bytes(40),
      ]);
    if (dice === 3) {
      const kind = this.#one([
        "slot",
        "buffer",
        "view",
        "text",
        "class",
        "reference",
        "error",
        "nothing",
      ]);
      return special([
        kind,
        this.#one([
          0,
          99,
          "constructor",
          null,
          { length: 2 ** 32 - 1 },
          ["object", "nobody", 1, "x"],
        ]),
        0,
        this.#number(),
      ]);
    }
    if (dice === 4)
      return Buffer.alloc(
        1 + this.pick(5000),
        this.#one([0x91, 0x81, 0xd4, 0xd6, 0x69, 0x72, 0x73]),
      );
    if (dice === 5)
      return pack(
        JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'),
      );
    if (dice === 6)
      return pack({
        name: this.#text(),
        message: 1,
        stack: null,
        fields: [],
        cause: { cause: {} },
      });
    if (dice === 7) return pack({ kept: this.pick(3), byteLength: this.#number(), object: "x" });
    return pack([this.pick(1000), this.#text()]);
  }

  #body(): Buffer {
    const value = this.#value();
    const lie = this.pick(10);
    if (lie === 0) return Buffer.concat([u32(this.#number(), 0, 0), value]);
    if (lie === 1) return Buffer.concat([u32(value.length, this.#number(), this.pick(3)), value]);
    return body(value, this.pick(3));
  }

  #message(): Buffer {
    const id = this.pick(4) === 0 ? this.#number() : this.pick(64);
    switch (this.pick(17)) {
      case 0:
        return messages.route(
          300 + this.pick(4),
          this.#target,
          this.#method(),
          this.#one([
            "",
            "",
            '{"group":"x"}',
            '{"returns":"streaming"}',
            '{"returns":3}',
            "[]",
            "{",
          ]),
        );
      case 1:
        return messages.route(this.#number(), this.#text(), this.#method());
      case 2:
      case 3:
      case 4:
        return messages.call(
          id,
          300 + this.pick(4),
          this.#body(),
          this.pick(4) === 0 ? [this.#body()] : [],
        );
      case 5:
        return messages.result(id, this.#body());
      case 6:
        return messages.failure(id, this.#body());
      case 7:
        return messages.fetch(id, this.#text());
      case 8:
        return messages.reference(this.#text(), this.#text(), this.#number());
      case 9:
        return messages.item(id, this.#number(), this.#body());
      case 10:
        return messages.consumed(id, this.#number());
      case 11:
        return messages.cancel(id);
      case 12:
        return this.pick(2) === 0
          ? messages.cancelObject(this.#text())
          : messages.value(this.#text(), this.#body());
      case 13:
        return Buffer.concat([messages.bare(7, id), u32(this.#number()), this.#body()]);
      case 14:
        return messages.want(id, this.#number());
      case 15:
        return messages.parts(id, this.#message(), [
          this.#number(),
          this.#one([NaN, -1, 1e300, 8]),
        ]);
      default:
        return messages.bare(this.#one([8, 9, 14, 16, 99, 255]), id);
    }
  }

  /** What comlink sends, or nearly. */
  #request(): Buffer {
    const path = this.#one([
      ["describe"],
      ["terminate"],
      ["launch"],
      ["constructor"],
      ["__proto__", "x"],
      ["describe", "call"],
      [],
      "describe",
      null,
    ]);
    const value = this.#one([null, 1, "host-1", { length: 1e9 }, [], { identity: null }]);
    const type = this.#one([
      "APPLY",
      "APPLY",
      "APPLY",
      "GET",
      "SET",
      "CONSTRUCT",
      "ENDPOINT",
      "RELEASE",
      "nothing",
      null,
    ]);
    const argument = this.#one<unknown>([
      { type: "RAW", value },
      { type: "HANDLER", name: "proxy", value },
      { type: "HANDLER", name: "throw", value },
      null,
      5,
    ]);
    return pack({
      id: this.#text(),
      type,
      path,
      argumentList: this.#one<unknown>([[argument], argument, null]),
    });
  }

  /** One frame, or what is sent in its place. */
  frame(isControl: boolean): Buffer {
    const dice = this.pick(21);
    if (dice === 0) return this.#bytes(200);
    if (dice === 20) return part(this.#number(), this.#bytes(100));
    if (dice === 1) return Buffer.concat([u32(this.#number(), this.#number()), this.#bytes(60)]);
    if (dice === 2)
      return word(this.#one([Buffer.of(1, 0, 0, 0, 0, 0, 0), Buffer.of(2), this.#bytes(80)]));
    if (dice === 3) return frame(this.#value(), [this.#bytes(100), this.#bytes(100)]);
    if (dice === 4)
      return Buffer.concat([
        u32(1, 1),
        Buffer.from([0, 0, 0, 0, this.pick(20), 0]),
        this.#bytes(60),
      ]);
    const bytes = isControl
      ? this.#request()
      : Buffer.concat(Array.from({ length: 1 + this.pick(3) }, () => this.#message()));
    if (dice === 5) return frame(bytes).subarray(0, 1 + this.pick(bytes.length + 7));
    if (dice < 9 && bytes.length > 0)
      for (let flips = this.pick(4); flips >= 0; flips--)
        bytes[this.pick(bytes.length)] = this.pick(256);
    if (dice === 9 && this.heard.length > 0) return this.#one(this.heard);
    return frame(bytes);
  }
}

let child: ChildProcess | undefined;
afterAll(async () => {
  await ray.shutdown();
  child?.kill("SIGKILL");
});

test(
  `fuzz: ${frameCount} frames of all kinds hurt those who send them (seed ${seed})`,
  async () => {
    const began = performance.now();
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
    const agent: Attackable = {
      place: { host: hostname, port: Number(port) },
      token: username,
      pid: child.pid ?? 0,
    };
    await ray.init({ numCpus: 0, nodes: [address], reconnectTimeoutMs: 1000, stuckWarningMs: 0 });
    const actor = Attacked.remote();
    const pid = await ray.get(actor.pid.remote());
    const target = await ray.get(actor.target.remote());
    const host: Attackable = { ...doorOf(pid), pid };
    const before = await settledSockets(agent.pid, host.pid);
    const trace = join(tmpdir(), `rayling-fuzz-${process.pid}`);

    let sent = 0;
    let connections = 0;
    let welcome = 0;
    let slow = 0;
    const over = new AbortController();
    const highest = { agent: 0, host: 0 };

    const lane = async (number: number): Promise<void> => {
      // A seed of its own, so that what one lane says does not depend on who is quicker.
      const attack = new Attack(seededRandom(seed + number), target, trace);
      while (sent < frameCount) {
        const at = attack.pick(3) === 0 ? agent : host;
        const isControl = at === agent;
        const peer = new RawPeer(at.place);
        connections += 1;
        const kind = attack.pick(10);
        if (kind > 1) {
          const words = {
            peerId: `guest-${number}-${connections}`,
            ...(attack.pick(3) === 0 ? { linkId: `link-${attack.pick(3)}` } : {}),
          };
          const isWelcome = await peer.introduce(kind === 2 ? "guess" : at.token, words);
          if (isWelcome) welcome += 1;
          // A handshake that was good once, said again on another connection.
          if (kind === 3 || attack.heard.length < 20) attack.heard.push(Buffer.concat(peer.said));
        }
        for (
          let count = 1 + attack.pick(60);
          count > 0 && peer.isOpen && sent < frameCount;
          count--
        ) {
          peer.send(attack.frame(isControl));
          peer.said.length = 0;
          sent += 1;
          // As long as they are good, some wait for what they did.
          if (attack.pick(8) === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        // Some leave, the others are shown out or stay until they are.
        if (attack.pick(2) === 0) peer.socket.end();
        else peer.socket.write(frame(Buffer.of(99)));
        const late = setTimeout(() => peer.end(), 20);
        await peer.closed;
        clearTimeout(late);
        if (connections % 50 === 0) {
          highest.agent = Math.max(highest.agent, residentBytes(agent.pid));
          highest.host = Math.max(highest.host, residentBytes(host.pid));
        }
      }
    };

    /** Begins a hello, or a frame, and goes on with it a byte at a time until it is hung up on. */
    const slowLane = async (number: number): Promise<void> => {
      while (!over.signal.aborted) {
        const at = number % 2 === 0 ? agent : host;
        const peer = new RawPeer(at.place);
        const isGuest =
          number % 4 > 1 && (await peer.introduce(at.token, { peerId: `slow-${number}` }));
        peer.send(u32(isGuest ? 50_000 : 4000, 0));
        const timer = setInterval(() => {
          peer.send(Buffer.of(0));
          peer.said.length = 0;
          // Of those that are known, the last are not waited for.
          if (over.signal.aborted && isGuest) peer.end();
        }, 1000);
        await peer.closed;
        clearInterval(timer);
        slow += 1;
      }
    };

    let sum = 0;
    let honest = 0;
    const count = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const amounts = Array.from({ length: 50 }, (_, index) => index);
        const answers = await ray.get(amounts.map((by) => actor.addHonestly.remote(by)));
        const expected = amounts.map((by) => (sum += by));
        expect(answers).toEqual(expected);
        const big = new Float64Array(20_000).fill(honest);
        expect(await ray.get(actor.echoLater.remote(big))).toEqual(big);
        honest += 51;
      }
    };

    const slowOnes = Array.from({ length: slowLanes }, (_, number) => slowLane(number));
    const counting = count();
    try {
      await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
    } finally {
      over.abort();
    }
    await counting;
    await Promise.all(slowOnes);

    // Those that were attacked are those that answer.
    expect(await ray.get(actor.addHonestly.remote(0))).toBe(sum);
    expect(await ray.get(actor.pid.remote())).toBe(host.pid);
    expect(child.exitCode).toBe(null);
    expect(existsSync(trace)).toBe(false);
    expect(
      ((await ray.get(actor.echo.remote({}))) as { polluted?: number }).polluted,
    ).toBeUndefined();
    const another = Attacked.remote();
    expect(await ray.get(another.addHonestly.remote(1))).toBe(1);
    await ray.kill(another);
    await expect
      .poll(() => [sockets(agent.pid).length, sockets(host.pid).length], {
        timeout: 60_000,
        interval: 200,
      })
      .toEqual(before);
    expect(welcome).toBeGreaterThan(0);
    const seconds = (performance.now() - began) / 1000;
    process.stdout.write(
      `fuzz: ${sent} frames over ${connections} connections, ${welcome} of them with the token, ${slow} slow ones; ${honest} honest calls beside them; ` +
        `at most ${Math.round(highest.agent / 1e6)} MB in the agent and ${Math.round(highest.host / 1e6)} MB in the host; ${seconds.toFixed(0)} s\n`,
    );
    expect(highest.agent).toBeLessThan(maxBytes);
    expect(highest.host).toBeLessThan(maxBytes);
  },
  600_000 + frameCount * 5,
);
