/**
 * A machine behind somebody who cuts, holds, delays and half-opens its connections, one at random every quarter of a second, and under TLS changes, repeats and reorders
 * what they carry: nothing is given up, every call is answered, and runs once.
 */
import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import * as ray from "@rayling/core";
import { dialLink, listen } from "@rayling/core/cluster";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { sized } from "../../../test/fixtures/suite.ts";
import { type Agent, enableNodes, makeCertificate, startAgent } from "../src/index.ts";
import { Adversary, type Fault, faults, forgeries } from "./fixtures/adversary.ts";
import { Recorder } from "./fixtures/recorder.ts";

enableNodes();

/** Where the machine seems to be. */
const address = "127.0.0.2";
const hosts = 3;
const strikes = sized({ gate: 40, full: 240 });
const everyMs = 250;

let root: string;
let tls: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rayling-adversary-"));
  tls = join(root, "tls");
  await makeCertificate({ authority: tls, hosts: [address] });
});
afterAll(() => rm(root, { recursive: true, force: true }));

/** Under TLS all happens that does without, and more. */
const ways: readonly (readonly [string, readonly Fault[], boolean])[] = [
  ["TLS", [...faults, ...forgeries], true],
  ["plain TCP", faults, false],
];

describe.each(sized({ gate: [1], full: [1, 2, 3, 4, 5] }))("seed %i", (seed) => {
  test.each(sized({ gate: ways.slice(0, 1), full: ways }))(
    "over %s every call is answered, once, and nothing is given up",
    async (_, kinds, isSecure) => {
      const random = seeded(seed);
      const adversary = new Adversary(address);
      const firstPort = await openRange(adversary, hosts);
      const agent: Agent = await startAgent({
        nodeName: "beset",
        numCpus: hosts,
        minWorkerPort: firstPort,
        maxWorkerPort: firstPort + hosts - 1,
        reconnectTimeoutMs: 10_000,
        ...(isSecure ? { tls } : {}),
      });
      const url = new URL(agent.address);
      await adversary.open(Number(url.port));
      url.hostname = address;
      const warnings: string[] = [];
      const onWarning = ({ message }: Error): void => void warnings.push(message);
      process.on("warning", onWarning);
      try {
        await ray.init({
          numCpus: 0,
          prewarm: 0,
          nodes: [url.href],
          reconnectTimeoutMs: 10_000,
          ...(isSecure ? { tls } : {}),
        });
        const actors = Array.from({ length: hosts }, () =>
          Recorder.options({ numCpus: 1 }).remote(),
        );
        const homes = await ray.get(actors.map((actor) => actor.home.remote()));
        const calls: Promise<void>[] = [];
        let made = 0;
        for (let strike = 0; strike < strikes; strike++) {
          for (const [index, actor] of actors.entries()) {
            const number = made++;
            calls.push(
              checkEcho(actor, number, random() < 0.2 ? 2 ** 20 : Math.floor(random() * 2000)),
            );
            const next = actors[(index + 1) % hosts] as ray.ActorHandle<Recorder>;
            if (random() < 0.3) calls.push(checkRelay(actor, next, `relayed ${number}`));
          }
          adversary.strike(kinds[Math.floor(random() * kinds.length)] ?? "cut", random);
          await pause(everyMs * 2 * random());
        }
        await Promise.all(calls);
        expect(await ray.get(actors.map((actor) => actor.home.remote()))).toEqual(homes);
        expect(await ray.get(actors.map((actor) => actor.twice.remote()))).toEqual(
          actors.map(() => []),
        );
        expect((await ray.nodes()).map(({ alive }) => alive)).toEqual([true, true]);
        expect(
          warnings.filter((line) => line.includes("lost") && !line.includes("nothing is lost")),
        ).toEqual([]);
        expect(adversary.counts.size).toBe(kinds.length);
      } finally {
        process.off("warning", onWarning);
        await ray.shutdown();
        await agent.close();
        await adversary.close();
      }
    },
  );
});

test("a link that the other side has given up ends, though nobody says so", async () => {
  const adversary = new Adversary(address);
  const never = (): Promise<never> => new Promise(() => undefined);
  const token = "a token of this test";
  const given = Promise.withResolvers<unknown>();
  const listener = await listen({
    address: { place: { host: "127.0.0.1", port: 0 }, token },
    explain: never,
    network: { reconnectTimeoutMs: 200, explainMs: 0 },
    onChannel: (channel) => given.resolve(channel.closed),
  });
  const { port } = listener.address as AddressInfo;
  await adversary.open(port);
  const link = await dialLink(
    { place: { host: address, port }, token },
    { peerId: "driver-test", wayId: undefined },
    {
      peerId: "the listener",
      explain: never,
      mayBeBusy: true,
      network: { reconnectTimeoutMs: 2000, explainMs: 0 },
    },
  );
  // The listener's ends are cut, of the heartbeat, too, and the dialler's are not.
  for (const which of [0, 0.9]) {
    const random = vi.fn<() => number>(() => 0.9).mockReturnValueOnce(which);
    expect(adversary.strike("half-open", random)).toBe(true);
  }
  expect(await given.promise).toMatchObject({ kind: "unreachable" });
  expect(await link.closed).toMatchObject({
    kind: "unreachable",
    message: "the listener has ended the connection",
  });
  listener.close();
  await adversary.close();
});

async function checkEcho(
  actor: ray.ActorHandle<Recorder>,
  number: number,
  size: number,
): Promise<void> {
  const bytes = new Uint8Array(size).fill(number % 251);
  const back = await ray.get(actor.echo.remote(`echo ${number}`, bytes));
  expect(Buffer.compare(back, bytes)).toBe(0);
}

async function checkRelay(
  actor: ray.ActorHandle<Recorder>,
  next: ray.ActorHandle<Recorder>,
  name: string,
): Promise<void> {
  expect(await ray.get(actor.relay.remote(next, name))).toBe(name);
}

/** So many ports, one behind the other. */
async function openRange(adversary: Adversary, count: number): Promise<number> {
  for (let first = 20_000 + (process.pid % 500) * 20; first < 60_000; first += count) {
    try {
      for (let index = 0; index < count; index++) await adversary.open(first + index);
      return first;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
  throw new Error("no ports are free");
}

/** Numbers in [0, 1). */
function seeded(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) >>> 0;
    return state / 2 ** 32;
  };
}
