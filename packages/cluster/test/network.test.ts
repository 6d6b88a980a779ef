/** What becomes of actors and calls when networks and machines fail: over TLS between network namespaces, each a machine with a cable that can be pulled. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as ray from "@rayling/core";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { enableNodes, makeCertificate, startAgent } from "../src/index.ts";
import { Far } from "./fixtures/actors.ts";
import { joinMachines, Machine, whyNoMachines, whyNoneFarAway } from "./fixtures/machines.ts";
import { isRunning } from "./fixtures/processes.ts";
import { inFull, sized } from "../../../test/fixtures/suite.ts";

enableNodes();

const reason = whyNoMachines();
const reasonNear = await whyNoneFarAway();
const agentMain = fileURLToPath(new URL("fixtures/agent-main.ts", import.meta.url));
const cli = fileURLToPath(new URL("../../rayling/dist/cli/main.js", import.meta.url));
const script = fileURLToPath(new URL("../../../examples/actors/machines.ts", import.meta.url));
const execute = promisify(execFile);
const driverMain = fileURLToPath(new URL("fixtures/driver-main.ts", import.meta.url));

interface FarMachine {
  readonly machine: Machine;
  readonly agent: ChildProcess;
  readonly address: string;
}

const processes: ChildProcess[] = [];
const machines: Machine[] = [];
let tls: string;

async function line(command: readonly string[]): Promise<[ChildProcess, string]> {
  const [name = "", ...args] = command;
  const child = spawn(name, args, { stdio: ["ignore", "pipe", "inherit"] });
  processes.push(child);
  const [text] = (await once(child.stdout, "data")) as [Buffer];
  return [child, text.toString().trim()];
}

/** A machine of that name, with an agent. */
async function far(
  name: string,
  reconnectTimeoutMs = 30_000,
  machine = new Machine(machines.length),
): Promise<FarMachine> {
  machines.push(machine);
  const out = join(tls, name);
  await makeCertificate({ authority: tls, out, hosts: [machine.address] });
  const options = { host: machine.address, tls: out, reconnectTimeoutMs };
  const [agent, address] = await line([
    ...machine.prefix,
    process.execPath,
    agentMain,
    name,
    "2",
    JSON.stringify(options),
  ]);
  return { machine, agent, address };
}

/** Two of them as nodes of a session in which nobody waits long for anybody. */
async function twoImpatient(): Promise<[FarMachine, FarMachine]> {
  const both: [FarMachine, FarMachine] = [await far("one", 500), await far("two", 500)];
  const nodes = both.map(({ address }) => address);
  await ray.init({ numCpus: 0, nodes, tls, reconnectTimeoutMs: 500 });
  return both;
}

const on = async (name: string, soft = false): Promise<ray.ActorOptions> => {
  const nodes = await ray.nodes();
  const nodeId = nodes.find(({ nodeName }) => nodeName === name)?.nodeId ?? "";
  return { schedulingStrategy: { kind: "NODE_AFFINITY", nodeId, soft } };
};
const isAlive = async (name: string): Promise<boolean | undefined> =>
  (await ray.nodes()).find(({ nodeName }) => nodeName === name)?.alive;

/** Begins to measure; what it returns prints the figures of bench/README.md. */
function timer(): (what: string, counted: Readonly<Record<string, number>>) => void {
  const began = performance.now();
  return (what, counted) => {
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const counts = Object.entries(counted).map(([name, count]) => `${count} ${name}, `);
    console.log(`${what}: ${counts.join("")}${seconds} s`);
  };
}

const patience = { timeout: 100_000, interval: 200 };

describe.skipIf(reason !== undefined)(
  `between machines${reason === undefined ? "" : `: ${reason}`}`,
  () => {
    beforeAll(async () => {
      tls = await mkdtemp(join(tmpdir(), "rayling-net-"));
      await makeCertificate({ authority: tls, hosts: ["127.0.0.1"] });
    });
    afterEach(async () => {
      await ray.shutdown();
      for (const child of processes.splice(0)) child.kill("SIGKILL");
      for (const machine of machines.splice(0)) machine.remove();
    });
    afterAll(() => rm(tls, { recursive: true, force: true }));

    test("actors run on both, reach each other and this one, and nothing is as it would not be at home", async () => {
      const [one, two] = [await far("one"), await far("two")];
      await ray.init({ numCpus: 1, nodes: [one.address, two.address], tls });
      const left = Far.options(await on("one")).remote();
      const right = Far.options(await on("two")).remote();
      const here = Far.remote();
      expect(await ray.get(left.addTo.remote(here, 2))).toBe(2);
      expect(await ray.get(here.addManyTo.remote(right, 500))).toHaveLength(500);
      const big = left.fill.remote(500_000, 2);
      expect(await ray.get(here.sum.remote(big))).toBe(1_000_000);
    });

    test.runIf(
      inFull("ways between machines are chosen by packages/cluster/test/tls.test.ts, too"),
    )(
      "an agent that only the driver's machine reaches has actors that those of other machines call",
      async () => {
        const [one, home, bare] = [
          await far("one"),
          await startAgent({ nodeName: "home", tls }),
          await startAgent({ nodeName: "bare" }),
        ];
        try {
          const nodes = [one, home, bare].map(({ address }) => address);
          await ray.init({ numCpus: 0, nodes, tls });
          const left = Far.options(await on("one")).remote();
          const right = Far.options(await on("home")).remote();
          expect(await ray.get(left.addTo.remote(right, 1))).toBe(1);
          expect(await ray.get(right.addTo.remote(left, 2))).toBe(2);
          // Two of this machine, by the loopback.
          const beside = Far.options(await on("bare")).remote();
          expect(await ray.get(right.addTo.remote(beside, 3))).toBe(3);
          // It would have to show a certificate there.
          await expect(ray.get(left.addTo.remote(beside, 4))).rejects.toThrow("has no certificate");
        } finally {
          await ray.shutdown();
          await Promise.all([home.close(), bare.close()]);
        }
      },
    );

    test.runIf(
      inFull(
        "packages/rayling/test/node-command.test.ts starts an agent by its command and runs on it",
      ),
    )(
      "the README's example gives the same with an agent on another machine, and its actors are on both",
      async () => {
        const machine = new Machine(machines.length);
        machines.push(machine);
        const out = join(tls, "example");
        await makeCertificate({ authority: tls, out, hosts: [machine.address] });
        const [, text] = await line([
          ...machine.prefix,
          process.execPath,
          cli,
          "node",
          "--listen",
          `${machine.address}:0`,
          "--tls",
          out,
          "--name",
          "far away",
          "--num-cpus",
          "2",
          "--token-file",
          join(out, "token"),
        ]);
        const address = /raylings:\/\/[^"]+/.exec(text)?.[0] ?? "";
        const example = async (...flags: readonly string[]): Promise<string> => {
          const { stdout } = await execute(process.execPath, [cli, "run", ...flags, "--", script]);
          return stdout;
        };
        const result = "primes below 20,000 by quarters: [ 669, 560, 525, 508 ]\n";
        expect(await example()).toBe(`${result}4 of 4 actors on this machine\n`);
        const both = await example("--nodes", address, "--tls", tls);
        expect(both).toContain(result);
        expect(both).toMatch(/^[1-3] of 4 actors on far away$/m);
        expect(both).toMatch(/^[1-3] of 4 actors on this machine$/m);
      },
    );

    test
      .runIf(
        inFull(
          "they wait for heartbeats of 15 s; packages/core/test/link.test.ts cuts and holds connections by itself",
        ),
      )
      .each<[string, (machine: Machine) => void, (machine: Machine) => void]>([
        ["is pulled", (machine) => machine.pull(), (machine) => machine.plug()],
        ["carries nothing to here", (machine) => machine.mute(), (machine) => machine.unmute()],
        ["carries nothing there", (machine) => machine.deafen(), (machine) => machine.undeafen()],
      ])("a cable that %s for a while loses and repeats no call", async (what, cut, heal) => {
      const { machine, address } = await far("one");
      await ray.init({ numCpus: 0, nodes: [address], tls });
      const actor = Far.options(await on("one")).remote();
      const count = 10_000;
      const results = Array.from({ length: count }, () => actor.add.remote(1));
      await ray.get(results[1000] as ray.ObjectRef<number>);
      cut(machine);
      const settled = timer();
      // Their heartbeats break after some 15 s: what was sent goes on over other connections.
      setTimeout(() => heal(machine), 20_000);
      expect(await ray.get(results)).toEqual(
        Array.from({ length: count }, (_, index) => index + 1),
      );
      expect(await isAlive("one")).toBe(true);
      settled(`a cable that ${what} for 20 s`, { answered: count });
    });

    test.skipIf(
      reasonNear !== undefined ||
        !inFull("delay and loss are the kernel's work, and 10,000 calls over it take their time"),
    )(
      `200 ms of delay and 1 % of loss repeat and lose no call${reasonNear === undefined ? "" : `: ${reasonNear}`}`,
      async () => {
        const cable = { delayMs: 200, loss: 0.01 };
        const distant = await Machine.farAway(machines.length, cable);
        const { address } = await far("one", 30_000, distant);
        await ray.init({ numCpus: 1, nodes: [address], tls });
        const actor = Far.options(await on("one")).remote();
        const here = Far.remote();
        const count = 10_000;
        const settled = timer();
        const results = Array.from({ length: count }, () => actor.add.remote(1));
        expect(await ray.get(results)).toEqual(
          Array.from({ length: count }, (_, index) => index + 1),
        );
        settled("200 ms of delay each way, 1 % of loss", { answered: count });
        // Host to host, and a value that is fetched.
        expect(await ray.get(here.addManyTo.remote(actor, 500))).toHaveLength(500);
        expect(await ray.get(here.sum.remote(actor.fill.remote(50_000, 2)))).toBe(100_000);
        expect(await isAlive("one")).toBe(true);
      },
    );

    test.runIf(
      inFull(
        "it waits for timeouts of TCP; the simulated world has machines that fall silent, packages/cluster/test/cluster.test.ts and lost-machine.test.ts what comes of one that is lost",
      ),
    )(
      "a machine that cannot be reached for too long is lost: what waits settles, what may restart does so elsewhere, and its hosts end",
      async () => {
        const [one] = await twoImpatient();
        const stays = Far.options(await on("one")).remote();
        const moves = Far.options({ ...(await on("one", true)), maxRestarts: 1 }).remote();
        const { pid } = await ray.get(stays.where.remote());
        const before = await ray.get(moves.where.remote());
        const waiting = Array.from({ length: 10_000 }, () => stays.add.remote(1));
        await ray.get(waiting[0] as ray.ObjectRef<number>);
        one.machine.pull();
        const settled = timer();
        await expect(ray.get(waiting)).rejects.toMatchObject({ deathCause: { kind: "node-died" } });
        const outcomes = await Promise.allSettled(waiting.map((ref) => ray.get(ref)));
        const done = outcomes.filter(({ status }) => status === "fulfilled").length;
        settled("a cable that stays pulled, nobody waits longer than 0.5 s", {
          answered: done,
          lost: outcomes.length - done,
        });
        // In order, and then no more.
        expect(outcomes.slice(0, done).every(({ status }) => status === "fulfilled")).toBe(true);
        expect(outcomes.slice(done).every(({ status }) => status === "rejected")).toBe(true);
        await expect.poll(() => isAlive("one"), patience).toBe(false);
        const after = await ray.get(moves.where.remote());
        settled("the same, until its actor answers elsewhere", {});
        expect(after.nodeId).not.toBe(before.nodeId);
        await expect.poll(() => isRunning(pid) || isRunning(before.pid), patience).toBe(false);
        // The machine takes the next driver.
        one.machine.plug();
        await ray.shutdown();
        await ray.init({ numCpus: 0, nodes: [one.address], tls });
        expect(await ray.get(Far.remote().add.remote(1))).toBe(1);
      },
    );

    test
      .runIf(
        inFull(
          "each waits for several timeouts of TCP; packages/core/test/peer-probe.test.ts has what decides",
        ),
      )
      .each<[string, ("there" | "back")[]]>([
        ["the way to each other", ["there", "back"]],
        ["the way from one to the other", ["there"]],
        ["the way of its answers", ["back"]],
      ])(
      "two machines that lose %s, and not the one to here, leave nothing waiting, and call each other again when it is back",
      async (_, ways) => {
        const [one, two] = await twoImpatient();
        const separate = joinMachines();
        try {
          const left = Far.options(await on("one")).remote();
          const right = Far.options(await on("two")).remote();
          expect(await ray.get(left.addTo.remote(right, 1))).toBe(1);
          if (ways.includes("there")) one.machine.lose(two.machine);
          if (ways.includes("back")) two.machine.lose(one.machine);
          // It is sent, and nobody says that it never arrives.
          await expect(ray.get(left.addTo.remote(right, 1))).rejects.toThrow(
            ray.ActorUnavailableError,
          );
          // Nor can a new way be found.
          await expect(ray.get(left.addTo.remote(right, 1))).rejects.toThrow(
            ray.ActorUnavailableError,
          );
          // What has arrived was done, and once.
          const sum = await ray.get(right.add.remote(1));
          expect(sum).toBe(ways.includes("there") ? 2 : 3);
          if (ways.includes("there")) one.machine.find(two.machine);
          if (ways.includes("back")) two.machine.find(one.machine);
          const calls = vi.fn(() => ray.get(left.addTo.remote(right, 1)).catch(() => 0));
          await expect.poll(calls, patience).toBeGreaterThan(sum);
          expect(await ray.get(right.add.remote(0))).toBeLessThanOrEqual(
            sum + calls.mock.calls.length,
          );
          expect([await isAlive("one"), await isAlive("two")]).toEqual([true, true]);
        } finally {
          separate();
        }
      },
    );

    test.runIf(inFull("packages/cluster/test/busy.test.ts has an agent that does not answer"))(
      "an agent that is stopped, not ended, is lost as well",
      async () => {
        const { agent, address } = await far("one", 500);
        await ray.init({ numCpus: 1, nodes: [address], tls, reconnectTimeoutMs: 500 });
        const actor = Far.options({ ...(await on("one", true)), maxRestarts: 1 }).remote();
        const { nodeId } = await ray.get(actor.where.remote());
        agent.kill("SIGSTOP");
        await expect.poll(() => isAlive("one"), patience).toBe(false);
        expect((await ray.get(actor.where.remote())).nodeId).not.toBe(nodeId);
        agent.kill("SIGCONT");
      },
    );

    test.each(sized({ gate: ["an agent"], full: ["a host", "an agent"] }))(
      "%s that is killed in the middle of 10,000 calls: each is counted once, or told lost",
      async (what) => {
        const [one] = await twoImpatient();
        const actor = Far.options(await on("one")).remote();
        const other = Far.options(await on("two")).remote();
        const { pid } = await ray.get(actor.where.remote());
        const count = 10_000;
        const calls = Array.from({ length: count }, () => actor.add.remote(1));
        const others = Array.from({ length: count }, () => other.add.remote(1));
        await ray.get(calls[1000] as ray.ObjectRef<number>);
        if (what === "a host") process.kill(pid, "SIGKILL");
        else one.agent.kill("SIGKILL");
        const settled = timer();
        const outcomes = await Promise.allSettled(calls.map((ref) => ray.get(ref)));
        const values = outcomes.flatMap((one_) =>
          one_.status === "fulfilled" ? [one_.value] : [],
        );
        expect(values).toEqual(Array.from({ length: values.length }, (_, index) => index + 1));
        expect(values.length).toBeGreaterThan(1000);
        settled(`${what} that is killed`, { answered: values.length, lost: count - values.length });
        for (const outcome of outcomes) {
          if (outcome.status === "rejected") {
            expect(outcome.reason).toBeInstanceOf(ray.ActorDiedError);
          }
        }
        // The others never noticed.
        expect(await ray.get(others)).toEqual(
          Array.from({ length: count }, (_, index) => index + 1),
        );
      },
    );

    test.runIf(inFull("packages/cluster/test/cluster.test.ts kills a driver, too"))(
      "a driver that is killed leaves nothing on the machine, which takes the next one",
      async () => {
        const { address } = await far("one", 500);
        const previous = process.env["RAYLING_TLS"];
        process.env["RAYLING_TLS"] = tls;
        try {
          const [driver, text] = await line([process.execPath, driverMain, address, "hang"]);
          const [, pid] = text.split(" ");
          expect(isRunning(Number(pid))).toBe(true);
          driver.kill("SIGKILL");
          const settled = timer();
          await expect.poll(() => isRunning(Number(pid)), patience).toBe(false);
          settled("a driver that is killed, until its hosts are gone", {});
          await ray.init({ numCpus: 0, nodes: [address] });
          expect(await ray.get(Far.remote().add.remote(1))).toBe(1);
        } finally {
          if (previous === undefined) delete process.env["RAYLING_TLS"];
          else process.env["RAYLING_TLS"] = previous;
        }
      },
    );
  },
);
