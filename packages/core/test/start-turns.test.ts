import { afterEach, expect, test, vi } from "vitest";
import { StartTurns } from "../src/runtime/start-turns.ts";

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
