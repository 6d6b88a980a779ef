import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { attempt, Endless, endless, type EndlessClass, items } from "../fixtures/session-end.ts";

afterEach(() => ray.shutdown());

type Act = () => unknown;

/** What waits when the session ends, by what the user does. `handle` lives, and has a place for more calls. */
async function everythingThatWaits(): Promise<Map<string, Act>> {
  const handle = Endless.remote();
  const single = Endless.options({ maxConcurrency: 1 }).remote();
  const pending = handle.never.remote();
  const stream = handle.items.remote();
  const taskStream = items.remote();
  const full = new ray.Queue<number>({ maxsize: 1 });
  const empty = new ray.Queue<number>();
  await full.put(1);
  await ray.get(single.quick.remote());
  for await (const ref of stream) {
    await ray.get(ref);
    break;
  }
  const items1 = handle.items.remote();
  await items1.next();
  await taskStream.next();
  const running = endless.remote();
  const pool = new ray.ActorPool([Endless.remote(), Endless.remote()]);
  pool.submit((actor) => actor.never.remote(), 1);
  const more = new ray.ActorPool([Endless.remote()]);
  const group = ray.placementGroup([{ CPU: 10_000 }]);
  const unplaced = Endless.options({ resources: { unheard: 1 } }).remote();
  const restarted = Endless.options({ maxRestarts: -1, maxTaskRetries: -1 }).remote();
  await ray.get(restarted.quick.remote());
  const never = new AbortController();
  const node = await new ray.Cluster().addNode({ numCpus: 1, labels: { is: "other" } });
  const there = Endless.options({ numCpus: 0, labelSelector: { is: "other" } }).remote();
  await ray.get(there.quick.remote());
  const emptied = ray.drainNode(node);
  return new Map<string, Act>([
    ["get of a call that runs", () => ray.get(pending)],
    ["get of a call that may be tried again", () => ray.get(restarted.never.remote())],
    ["get of a call of an actor that has no place", () => ray.get(unplaced.quick.remote())],
    [
      "get of a call that stands in a queue",
      () => {
        void single.never.remote();
        return ray.get(single.quick.remote());
      },
    ],
    ["get of a call whose argument is not ready", () => ray.get(handle.never.remote(pending))],
    [
      "get of an actor whose argument is not ready",
      () => {
        const Late = Endless as unknown as ray.ActorClass<new (value: unknown) => EndlessClass>;
        return ray.get(Late.remote(pending).quick.remote());
      },
    ],
    ["get of an actor that starts now", () => ray.get(Endless.remote().quick.remote())],
    ["get of a task that runs", () => ray.get(running)],
    [
      "get of a task that has no worker",
      () => ray.get(endless.options({ resources: { unheard: 1 } }).remote()),
    ],
    ["get of a task whose argument is not ready", () => ray.get(endless.remote(pending))],
    ["get of a list", () => ray.get([ray.put(1), pending])],
    ["get of an object", () => ray.get({ a: pending })],
    ["get with a time", () => ray.get(pending, { timeoutMs: 3_600_000 })],
    ["get with a signal", () => ray.get(pending, { signal: never.signal })],
    ["wait", () => ray.wait([pending])],
    ["wait with a time", () => ray.wait([pending], { timeoutMs: 3_600_000 })],
    ["wait with a signal", () => ray.wait([pending, running], { signal: never.signal })],
    ["wait for a stream", () => ray.wait([items1])],
    ["the next of a stream", () => items1.next()],
    ["the next of a task's stream", () => taskStream.next()],
    ["the end of a stream", () => ray.get(items1.completed())],
    [
      "a loop over a stream",
      async () => {
        for await (const ref of handle.items.remote()) await ray.get(ref);
      },
    ],
    ["map", () => Array.fromAsync(ray.map(endless, [1, 2, 3]))],
    ["mapUnordered", () => Array.fromAsync(ray.mapUnordered(endless, [1, 2, 3]))],
    ["the next of a pool", () => pool.getNext()],
    [
      "a map of a pool",
      () => Array.fromAsync(more.map((actor) => actor.never.remote(), [1, 2, 3])),
    ],
    ["get of a queue", () => empty.get()],
    ["get of a queue with a time", () => empty.get({ timeoutMs: 3_600_000 })],
    ["put into a queue", () => full.put(2)],
    ["ready of a placement group", () => ray.get(group.ready())],
    ["wait of a placement group", () => group.wait(3_600_000)],
    ["a question about the state", () => ray.state.listTasks()],
    ["a summary", () => ray.state.summarizeActors()],
    ["the emptying of a node", () => emptied],
  ]);
}

/** What is done with the remains of a session. */
async function everythingAfterwards(): Promise<Map<string, Act>> {
  const handle = Endless.remote();
  const ready = handle.quick.remote();
  await ray.get(ready);
  const pending = handle.never.remote();
  const stored = ray.put(1);
  const stream = handle.items.remote();
  await stream.next();
  const queue = new ray.Queue<number>();
  await queue.put(1);
  const pool = new ray.ActorPool([handle]);
  const group = ray.placementGroup([{ CPU: 1 }]);
  await group.wait();
  return new Map<string, Act>([
    ["a call", () => handle.quick.remote()],
    ["get of a value that was ready", () => ray.get(ready)],
    ["get of a value that was not", () => ray.get(pending)],
    ["get of a put", () => ray.get([stored])],
    ["wait", () => ray.wait([stored])],
    ["wait for a stream", () => ray.wait([stream])],
    [
      "a loop over a stream",
      async () => {
        for await (const ref of stream) await ray.get(ref);
      },
    ],
    ["cancel", () => ray.cancel(pending)],
    ["kill", () => ray.kill(handle)],
    ["a ref in a value", () => ray.put({ stored })],
    ["a handle in a value", () => ray.put({ handle })],
    ["a ref as an argument", () => endless.remote(stored)],
    ["put into a queue", () => queue.put(2)],
    ["get of a queue", () => queue.get()],
    ["a pool", () => pool.submit((actor) => actor.quick.remote(), 1)],
    ["ready of a placement group", () => group.ready()],
    ["wait of a placement group", () => group.wait()],
  ]);
}

test("whatever waits when the session ends rejects with SessionEndedError", async () => {
  await ray.init({ numCpus: 8, prewarm: 0 });
  const acts = await everythingThatWaits();
  const outcomes = [...acts].map(async ([name, act]) => [name, await attempt(act)] as const);
  // In the same turn: some of them would soon have their answer.
  await ray.shutdown();
  const expected = [...acts.keys()].map((name) => [name, true]);
  expect(Object.fromEntries(await Promise.all(outcomes))).toEqual(Object.fromEntries(expected));
});

test.each([["none runs"], ["another one runs"]])(
  "what is left of a session that has ended says so where %s",
  async (how) => {
    await ray.init({ numCpus: 4, prewarm: 0 });
    const acts = await everythingAfterwards();
    await ray.shutdown();
    if (how === "another one runs") await ray.init({ numCpus: 1, prewarm: 0 });
    for (const [name, act] of acts) expect([name, await attempt(act)]).toEqual([name, true]);
  },
);

test("what is let go of after the session has ended is silent, and starts nothing", async () => {
  await ray.init({ numCpus: 4, prewarm: 0 });
  const handle = Endless.remote();
  const group = ray.placementGroup([{ CPU: 1 }]);
  const cluster = new ray.Cluster();
  await cluster.addNode();
  const kept: AsyncDisposable[] = [
    handle,
    handle.items.remote(),
    new ray.Queue(),
    new ray.ActorPool([handle]),
    group,
    cluster,
  ];
  await ray.shutdown();
  for (const one of kept) await one[Symbol.asyncDispose]();
  expect(ray.isInitialized()).toBe(false);
  await ray.init({ numCpus: 1, prewarm: 0 });
  for (const one of kept) await one[Symbol.asyncDispose]();
});

test("where the runtime does not start by itself, that a session has ended is said", async () => {
  process.env["RAYLING_AUTO_INIT"] = "0";
  try {
    await ray.init();
    await ray.shutdown();
    expect(await attempt(() => endless.remote())).toBe(true);
    expect(await attempt(() => ray.state.listActors())).toBe(true);
  } finally {
    delete process.env["RAYLING_AUTO_INIT"];
  }
});

test("it is a RaySystemError, has a code, and tells why", async () => {
  await ray.init({ numCpus: 1, prewarm: 0 });
  const waiting = ray.get(Endless.remote().never.remote()).catch((error: unknown) => error);
  await ray.shutdown();
  const error = await waiting;
  expect(error).toBeInstanceOf(ray.RaySystemError);
  expect(error).toMatchObject({
    name: "SessionEndedError",
    code: "SESSION_ENDED",
    message: "get cannot be answered: the session has ended (the runtime was shut down)",
  });
});

test("a handler of Ctrl-C ends a program with one catch", async () => {
  const path = fileURLToPath(new URL("../fixtures/drivers/ctrl-c.ts", import.meta.url));
  const driver = spawn(process.execPath, [path], { stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  const output = createInterface({ input: driver.stdout });
  output.on("line", (line) => {
    lines.push(line);
    if (line === "ready") driver.kill("SIGINT");
  });
  const [code] = (await once(driver, "close")) as [number | null];
  expect([code, ...lines]).toEqual([0, "ready", "interrupted", "done"]);
});
