/**
 * A million frames that are none, from one seed: malformed, cut off, oversized, deeply nested, slow and replayed, with and without a token, to an agent and
 * to a host in processes of their own, while the driver goes on counting with an actor on that host.
 *
 * RAYLING_FUZZ_SEED and RAYLING_FUZZ_FRAMES choose another run; a failure names its seed. The model is what was counted: whatever else is said, the actor's
 * answers are those of honest calls alone.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeCertificate } from "@rayling/cluster";
import * as ray from "@rayling/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Attack, goodPackage, uploadOf } from "../fixtures/attack.ts";
import { Attacked } from "../fixtures/attacked.ts";
import { Doors } from "../fixtures/doors.ts";
import {
  frame,
  type Place,
  RawPeer,
  residentBytes,
  settledSockets,
  sockets,
  u32,
} from "../fixtures/wire.ts";
import { seededRandom } from "../servers/seeded.ts";
import { sized } from "../fixtures/suite.ts";

const seed = Number(process.env["RAYLING_FUZZ_SEED"] ?? 20_261_122);
const frameCount = Number(process.env["RAYLING_FUZZ_FRAMES"] ?? sized({ gate: 200, full: 20_000 }));
/** Attackers at the same time. */
const lanes = 16;
/** Beside those, that send a byte now and then. */
const slowLanes = 8;
/** The bound of memory that docs/security.md states, of each of the two. */
const maxBytes = 500e6;

const doors = new Doors();

interface Attackable {
  readonly place: Place;
  readonly token: string;
  readonly pid: number;
}

let child: ChildProcess | undefined;
let folder: string;
beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), "rayling-fuzz-"))));
afterEach(async () => {
  await ray.shutdown();
  child?.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

/**
 * Frames are read by the same code; packages/cluster/test/tls.test.ts has peers with and without a
 * good certificate.
 */
const ways: readonly [string, boolean][] = [
  ["", false],
  [" over TLS, with a good certificate,", true],
];
test.each(sized({ gate: ways.slice(0, 1), full: ways }))(
  `fuzz: ${frameCount} frames of all kinds%s hurt those who send them (seed ${seed})`,
  async (how, isSecure) => {
    const began = performance.now();
    const tls = join(folder, "tls");
    if (isSecure) await makeCertificate({ authority: tls, hosts: ["127.0.0.1"] });
    const [ca, cert, key] = ["ca", "cert", "key"].map((name) =>
      isSecure ? readFileSync(join(tls, `${name}.pem`), "utf8") : "",
    );
    const shown = isSecure ? { ca, cert, key } : undefined;
    const cache = join(folder, "code");
    child = spawn(
      process.execPath,
      [fileURLToPath(new URL("../fixtures/agent.ts", import.meta.url)), cache],
      {
        env: { ...process.env, ...(isSecure ? { RAYLING_TLS: tls } : {}) },
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
    await ray.init({
      numCpus: 0,
      nodes: [address],
      reconnectTimeoutMs: 1000,
      stuckWarningMs: 0,
      ...(isSecure ? { tls } : {}),
    });
    const actor = Attacked.remote();
    const pid = await ray.get(actor.pid.remote());
    const target = await ray.get(actor.target.remote());
    const host: Attackable = { ...(await doors.of(pid)), pid };
    const before = await settledSockets(agent.pid, host.pid);
    const trace = join(folder, "trace");

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
        const kind = attack.pick(10);
        // The first show no certificate.
        const peer = new RawPeer(at.place, kind === 0 ? undefined : shown);
        connections += 1;
        if (kind > 1) {
          const words = {
            peerId: `guest-${number}-${connections}`,
            ...(kind > 7 || attack.pick(3) === 0 ? { linkId: `link-${attack.pick(3)}` } : {}),
          };
          const isWelcome = await peer.introduce(kind === 2 ? "guess" : at.token, words);
          if (isWelcome) welcome += 1;
          // A handshake that was good once, said again on another connection.
          if (kind === 3 || attack.heard.length < 20) attack.heard.push(Buffer.concat(peer.said));
        }
        // Some bring code, and hear what became of it.
        if (isControl && kind > 7) {
          for (let count = 1 + attack.pick(3); count > 0 && peer.isOpen; count--) {
            for (const step of attack.upload()) {
              peer.send(step);
              sent += 1;
              await peer.next();
            }
          }
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
        const peer = new RawPeer(at.place, shown);
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
    // Code is still taken; of all that was brought, what is good is there.
    const guest = new RawPeer(agent.place, shown);
    expect(await guest.introduce(agent.token, { peerId: "late", linkId: "late" })).toBe(true);
    for (const step of uploadOf(goodPackage)) {
      guest.send(step);
      const answer = await guest.next();
      expect(answer?.toString("latin1")).toContain("RAW");
    }
    guest.end();
    const kept = await readdir(cache, { recursive: true });
    expect(kept.filter((path) => /packages\/[^/]+$/.test(path))).toEqual([
      expect.stringContaining(goodPackage.id),
    ]);
    const seconds = (performance.now() - began) / 1000;
    process.stdout.write(
      `fuzz: ${sent} frames${how} over ${connections} connections, ${welcome} of them with the token, ${slow} slow ones; ${honest} honest calls beside them; ` +
        `at most ${Math.round(highest.agent / 1e6)} MB in the agent and ${Math.round(highest.host / 1e6)} MB in the host; ${seconds.toFixed(0)} s\n`,
    );
    expect(highest.agent).toBeLessThan(maxBytes);
    expect(highest.host).toBeLessThan(maxBytes);
  },
  600_000 + frameCount * 5,
);
