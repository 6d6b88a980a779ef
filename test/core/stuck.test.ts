import { afterEach, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { isOverAgent, sharesMemory } from "../fixtures/isolation.ts";
import { Asking, double, Gate, type GateClass, hold, Ordered } from "../fixtures/inside.ts";

afterEach(() => ray.shutdown());

const start = (stuckWarningMs = 30): Promise<ray.SessionInfo> =>
  ray.init({ numCpus: 1, prewarm: 0, stuckWarningMs });
const cell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));
const becomes = async (of: Int32Array, value: number): Promise<void> => {
  for (let now = Atomics.load(of, 0); now !== value; now = Atomics.load(of, 0)) {
    await Atomics.waitAsync(of, 0, now).value;
  }
};
const wake = (of: Int32Array): void => {
  Atomics.store(of, 0, 1);
  Atomics.notify(of, 0);
};

/** What the runtime warns of until `stop`. */
function listen(): {
  including: (part: string) => Promise<string>;
  readonly all: string[];
  next: () => Promise<void>;
  stop: () => void;
} {
  const all: string[] = [];
  let changed = Promise.withResolvers<void>();
  const onWarning = (warning: Error): void => {
    if (warning.name !== "RaylingWarning") return;
    all.push(warning.message);
    changed.resolve();
    changed = Promise.withResolvers();
  };
  process.on("warning", onWarning);
  return {
    all,
    next: () => changed.promise,
    async including(part) {
      for (;;) {
        const found = all.find((text) => text.includes(part));
        if (found !== undefined) return found;
        await changed.promise;
      }
    },
    stop: () => process.off("warning", onWarning),
  };
}

/** The warning about a get that waits for `ref`; the get is left to itself. */
async function warningOf(
  ref: ray.ObjectRef,
  others: readonly ray.ObjectRef[] = [],
): Promise<string> {
  const warnings = listen();
  ray.get([ref, ...others]).catch(() => undefined);
  const text = await warnings.including(ref.id);
  warnings.stop();
  return text;
}

async function startGate(): Promise<ray.ActorHandle<GateClass>> {
  const gate = Gate.remote();
  await ray.get(gate.quick.remote());
  return gate;
}

test("a get that waits for a busy actor names the actor, what it runs, and what is before the call", async () => {
  await start();
  const gate = await startGate();
  const [first, , third] = [1, 2, 3].map((value) => gate.pass.remote(value)) as [
    ray.ObjectRef,
    ray.ObjectRef,
    ray.ObjectRef,
  ];
  // Before it is asked why they wait, the actor has all of them.
  while (
    (await ray.state.getTask(third.id))?.state !== "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY"
  ) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  let text = await warningOf(third, [first]);
  while (text.includes("does not answer")) text = await warningOf(third, [first]);
  expect(text).toMatch(/^get has waited \d+\.\d s for 2 not ready:\n/m);
  expect(text).toContain(
    `GateClass.pass (${third.id}): it was sent to its actor, behind 2 calls of this caller (the first is GateClass.pass (${first.id})); actor GateClass (actor-`,
  );
  expect(text).toMatch(/is alive on host-\w+, runs 1 calls and has 2 queued/);
  expect(text).toContain(`GateClass.pass (${first.id}): it was sent to its actor; actor GateClass`);
});

test.runIf(sharesMemory)("a host whose thread is held is said to be silent", async () => {
  await start();
  const gate = Gate.remote();
  const [started, release] = [cell(), cell()];
  const held = gate.block.remote(started, release);
  await becomes(started, 1);
  const text = await warningOf(held);
  wake(release);
  expect(text).toContain("which does not answer: code that runs there holds its thread");
  expect(await ray.get(held)).toBe("released");
});

test("a process that does not answer may be stopped, and is not said to hold its thread", async () => {
  await start();
  const gate = Gate.options({ isolation: "process" }).remote();
  const pid = await ray.get(gate.processId.remote());
  process.kill(pid, "SIGSTOP");
  const text = await warningOf(gate.quick.remote());
  process.kill(pid, "SIGCONT");
  expect(text).toContain(
    isOverAgent
      ? "which does not answer: code holds the thread of its process, the process or its machine stands still, or the network to that machine is down"
      : "which does not answer: code holds the thread of its process, or the process is stopped",
  );
});

test("a get of a value that stands where it was made says that, too", async () => {
  await start();
  const gate = Gate.options({ isolation: "process" }).remote();
  const pid = await ray.get(gate.processId.remote());
  const made = gate.bytes.remote(2 ** 20);
  await ray.wait([made]);
  process.kill(pid, "SIGSTOP");
  const text = await warningOf(made);
  process.kill(pid, "SIGCONT");
  expect(text).toMatch(
    /for 1 not ready:\n.*: its value is not here yet: it is asked of host-\w+, which keeps it and/,
  );
});

test("an actor that waits for resources: the warning says which are missing", async () => {
  await start();
  const big = Gate.options({ resources: { license: 1 } }).remote();
  const text = await warningOf(big.quick.remote());
  expect(text).toMatch(/GateClass\.quick \(.*is being created and needs .*license/);
});

test.runIf(sharesMemory)("a task that waits for a worker: the warning says why", async () => {
  await start();
  const [started, release] = [cell(), cell()];
  const holding = hold.remote(started, release);
  await becomes(started, 1);
  const text = await warningOf(double.remote(2));
  wake(release);
  expect(text).toMatch(/number 1 of the tasks that wait for a worker; the first of them .*CPU/);
  expect(await ray.get(holding)).toBe("released");
});

test("a call whose argument is not ready names the argument and why that is not ready", async () => {
  await start();
  const [gate, other] = [await startGate(), await startGate()];
  const argument = gate.pass.remote(1);
  const text = await warningOf(other.quick.remote(argument));
  expect(text).toMatch(
    /GateClass\.quick \(.*\): its argument GateClass\.pass \(driver-\w+:\d+\) is not ready: it was sent to its actor/,
  );
});

test("a call behind another one that waits for its argument names that one", async () => {
  await start();
  const [gate, ordered] = [await startGate(), Ordered.remote()];
  await ray.get(ordered.quick.remote());
  const first = ordered.quick.remote(gate.pass.remote(1));
  const text = await warningOf(ordered.quick.remote(2));
  expect(text).toContain(
    `it is number 2 in its queue, behind OrderedClass.quick (${first.id}), which waits: its argument GateClass.pass`,
  );
});

test("a call without credit says so, with its place", async () => {
  await start();
  const gate = await startGate();
  const refs = Array.from({ length: 5000 }, () => gate.pass.remote());
  const text = await warningOf(refs.at(-1) as ray.ObjectRef);
  expect(text).toMatch(/it is number \d+ in its queue, behind GateClass\.pass \(.*credit/);
});

test("inside an actor, the warning comes from its thread and names the call that waits", async () => {
  await start();
  const gate = await startGate();
  const asking = Asking.remote();
  const seen = await ray.get(asking.seen.remote(gate));
  expect(seen).toMatch(/^get in Asking\.seen has waited/);
  expect(seen).toContain("GateClass.pass");
});

test("each wait is told of once; a list names three and counts the rest", async () => {
  await start(20);
  const gate = await startGate();
  const refs = Array.from({ length: 7 }, () => gate.pass.remote());
  const [first] = refs as [ray.ObjectRef];
  const warnings = listen();
  ray.get(refs).catch(() => undefined);
  expect(await warnings.including(`(${first.id})`)).toContain("  and 4 more");
  ray.wait(refs, { numReturns: 7 }).catch(() => undefined);
  expect(await warnings.including("wait has waited")).toContain(`(${first.id})`);
  expect(
    warnings.all.filter((one) => one.startsWith("get has") && one.includes(first.id)),
  ).toHaveLength(1);
  warnings.stop();
});

test("0 turns it off, and values that are ready warn of nothing", async () => {
  await start(0);
  const warnings = listen();
  const gate = Gate.remote();
  const waiting = ray.get(gate.pass.remote(), { timeoutMs: 100 });
  await expect(waiting).rejects.toBeInstanceOf(ray.GetTimeoutError);
  expect(await ray.get(ray.put(5))).toBe(5);
  warnings.stop();
  expect(warnings.all).toEqual([]);
});

test("a wait with a time of its own is told of then, whatever the session says", async () => {
  await start(0);
  const gate = await startGate();
  const [first, second] = [gate.pass.remote(1), gate.pass.remote(2)];
  const warnings = listen();
  ray.get(first, { stuckWarningMs: 20 }).catch(() => undefined);
  expect(await warnings.including("get has waited")).toContain(`(${first.id})`);
  ray.wait([second], { stuckWarningMs: 20 }).catch(() => undefined);
  expect(await warnings.including("wait has waited")).toContain(`(${second.id})`);
  warnings.stop();
  expect(warnings.all).toHaveLength(2);
});

test("a wait that says 0 is never told of, those beside it are", async () => {
  await start(20);
  const gate = await startGate();
  const [slow, later, other] = [1, 2, 3].map((value) => gate.pass.remote(value)) as [
    ray.ObjectRef,
    ray.ObjectRef,
    ray.ObjectRef,
  ];
  const warnings = listen();
  ray.wait([slow], { stuckWarningMs: 0 }).catch(() => undefined);
  ray.wait([later], { stuckWarningMs: 3_600_000 }).catch(() => undefined);
  ray.get(other).catch(() => undefined);
  await warnings.including("get has waited");
  ray.get(other).catch(() => undefined);
  while (warnings.all.length < 2) await warnings.next();
  warnings.stop();
  expect(warnings.all.filter((text) => text.startsWith("wait"))).toEqual([]);
});
