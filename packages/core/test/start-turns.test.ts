import { afterEach, expect, test, vi } from "vitest";
import type { Host, LauncherOptions } from "../src/runtime/launch/host.ts";
import type { NodeLauncher } from "../src/runtime/nodes/joined-node.ts";
import { Launcher } from "../src/runtime/launch/launcher.ts";
import { StartTurns } from "../src/runtime/launch/start-turns.ts";
import { followGlobals } from "./fixtures/follow-globals.ts";

followGlobals();

afterEach(() => vi.useRealTimers());

/** Whether it is over by now. */
async function isOver(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol("open");
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  return (await Promise.race([promise, Promise.resolve(open)])) !== open;
}

test("as many start at once as may, and the others in the order in which they came", async () => {
  const turns = new StartTurns(2);
  const order: number[] = [];
  const all = Array.from({ length: 5 }, (_, index) => turns.next().then(() => order.push(index)));
  await isOver(Promise.all(all));
  expect(order).toEqual([0, 1]);
  expect(turns.isFull).toBe(true);
  turns.end();
  await isOver(Promise.all(all));
  expect(order).toEqual([0, 1, 2]);
  for (let left = 0; left < 2; left++) turns.end();
  await Promise.all(all);
  expect(order).toEqual([0, 1, 2, 3, 4]);
  turns.end();
  expect(turns.isFull).toBe(false);
});

test("a turn is over once when what was started is ready, fails, or takes too long", async () => {
  vi.useFakeTimers();
  const turns = new StartTurns(1);
  const ready = Promise.withResolvers<void>();
  await turns.next();
  turns.until(ready.promise);
  const second = turns.next();
  expect(await isOver(second)).toBe(false);
  ready.resolve();
  expect(await isOver(second)).toBe(true);
  turns.until(Promise.reject(new Error("it did not start")));
  const third = turns.next();
  expect(await isOver(third)).toBe(true);
  turns.until(new Promise(() => undefined));
  const fourth = turns.next();
  expect(await isOver(fourth)).toBe(false);
  vi.advanceTimersByTime(60_000);
  expect(await isOver(fourth)).toBe(true);
  turns.end();
  expect(turns.isFull).toBe(false);
});

test("who starts at once takes a turn from the others; nobody waits when it is closed", async () => {
  const turns = new StartTurns(1);
  turns.take();
  const waiting = [turns.next(), turns.next()];
  expect(await isOver(Promise.any(waiting))).toBe(false);
  turns.close();
  await Promise.all(waiting);
});

test("each machine has turns by its own CPUs, not by the driver's", async () => {
  const options: Partial<LauncherOptions> = {
    nodeId: "own",
    prewarm: 0,
    keepsPrewarm: false,
    onLaunch: () => undefined,
    onTaken: () => undefined,
  };
  const launcher = new Launcher(options as LauncherOptions);
  const started: string[] = [];
  const never = new Promise<never>(() => undefined);
  const machine = (parallelism: number): NodeLauncher => ({
    parallelism,
    lost: never,
    close: async () => undefined,
    launch({ nodeId }) {
      started.push(nodeId);
      const host: Partial<Host> = { ready: never, exited: never };
      return host as Host;
    },
  });
  launcher.addNode("small", machine(1));
  launcher.addNode("large", machine(50));
  const all = ["small", "large"].flatMap((nodeId) =>
    Array.from({ length: 120 }, () =>
      launcher.take({ nodeId, isolation: "process", runtimeEnv: undefined }, () => true),
    ),
  );
  await isOver(Promise.all(all));
  const counts = ["small", "large"].map((name) => started.filter((one) => one === name).length);
  expect(counts).toEqual([2, 100]);
});
