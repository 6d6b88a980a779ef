/** What hosts write, on its way to a driver that takes it at its own pace. */
import { expect, test } from "vitest";
import { HostOutput, type WrittenLine } from "../src/agent/host-output.ts";

/** A driver that takes a portion when it is told to. */
class SlowDriver {
  readonly portions: (readonly WrittenLine[])[] = [];
  readonly #taken: (() => void)[] = [];

  readonly send = (lines: readonly WrittenLine[]): Promise<void> => {
    this.portions.push(lines);
    return new Promise((resolve) => this.#taken.push(resolve));
  };

  async take(): Promise<void> {
    this.#taken.shift()?.();
    await settled();
  }

  get shown(): readonly string[] {
    return this.portions.flat().map(([hostId, , , line]) => `${hostId}: ${line}`);
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** Room for so many lines of 36 characters. */
const room = (lines: number): number => 100 * lines;
const text = (index: number): string => String(index).padEnd(36, ".");

test("what comes at once goes at once, and the next portion when the last one was taken", async () => {
  const driver = new SlowDriver();
  const output = new HostOutput(driver.send);
  for (const line of ["a", "b"]) output.add("one", "stdout", "actor", line);
  await settled();
  for (const line of ["c", "d"]) output.add("two", "stderr", "", line);
  await settled();
  expect(driver.portions).toEqual([
    [
      ["one", "stdout", "actor", "a"],
      ["one", "stdout", "actor", "b"],
    ],
  ]);
  await driver.take();
  expect(driver.shown).toEqual(["one: a", "one: b", "two: c", "two: d"]);
  await driver.take();
  output.add("one", "stdout", "actor", "e");
  await settled();
  expect(driver.portions).toHaveLength(3);
});

test("a portion ends at its limit", async () => {
  const driver = new SlowDriver();
  const output = new HostOutput(driver.send, { held: room(100), portion: room(2) });
  for (let index = 0; index < 5; index++) output.add("one", "stdout", "", text(index));
  for (let taken = 0; taken < 3; taken++) {
    await settled();
    await driver.take();
  }
  expect(driver.portions.map(({ length }) => length)).toEqual([2, 2, 1]);
});

const missing = (lines: string): string =>
  `${lines} missing here: the hosts wrote more than the driver could take`;

test("what is more than may be held is dropped, and how much is said where it is missing", async () => {
  const driver = new SlowDriver();
  const output = new HostOutput(driver.send, { held: room(12), portion: room(6) });
  // One host may hold as much as it leaves to the others.
  for (let index = 0; index < 10; index++) output.add("one", "stdout", "", text(index));
  await settled();
  // What is with the driver counts until it was taken.
  output.add("one", "stdout", "", text(10));
  await driver.take();
  expect(driver.shown).toEqual([
    ...[0, 1, 2, 3, 4, 5].map((index) => `one: ${text(index)}`),
    `one: ${missing("5 lines are")}`,
  ]);
  await driver.take();
  for (let index = 11; index < 18; index++) output.add("one", "stdout", "", text(index));
  output.hostEnded("one");
  expect(driver.shown.slice(7)).toEqual([
    ...[11, 12, 13, 14, 15, 16].map((index) => `one: ${text(index)}`),
    `one: ${missing("a line is")}`,
  ]);
});

test("a host that writes much leaves room for the others", async () => {
  const driver = new SlowDriver();
  const output = new HostOutput(driver.send, { held: room(8), portion: room(100) });
  for (let index = 0; index < 100; index++) output.add("loud", "stdout", "", text(index));
  for (let index = 0; index < 100; index++) output.add("louder", "stdout", "", text(index));
  output.add("quiet", "stderr", "", text(0));
  await settled();
  const counts = ["loud", "louder", "quiet"].map(
    (name) => driver.shown.filter((line) => line.startsWith(`${name}:`)).length,
  );
  expect(counts).toEqual([4, 2, 1]);
});

test("a host that writes nothing more is told of when there is room", async () => {
  const driver = new SlowDriver();
  const output = new HostOutput(driver.send, { held: room(2), portion: room(1) });
  for (let index = 0; index < 3; index++) output.add("one", "stdout", "", text(index));
  await settled();
  await driver.take();
  await settled();
  expect(driver.shown).toEqual([`one: ${text(0)}`, `one: ${missing("2 lines are")}`]);
});

test("what a host wrote is sent before its end is told, and others keep their order", async () => {
  const driver = new SlowDriver();
  const output = new HostOutput(driver.send);
  output.add("one", "stdout", "", "a");
  await settled();
  output.add("one", "stdout", "", "b");
  output.add("two", "stdout", "", "c");
  output.add("one", "stdout", "", "d");
  output.hostEnded("one");
  expect(driver.shown).toEqual(["one: a", "one: b", "one: d"]);
  await driver.take();
  expect(driver.shown.at(-1)).toBe("two: c");
});

test("a driver that cannot show a portion gets the next one all the same", async () => {
  const shown: string[] = [];
  const output = new HostOutput(async (lines) => {
    shown.push(...lines.map(([, , , line]) => line));
    if (lines[0]?.[3] === "bad") throw new Error("it has no terminal");
  });
  output.add("one", "stdout", "", "bad");
  await settled();
  output.add("one", "stdout", "", "good");
  await settled();
  expect(shown).toEqual(["bad", "good"]);
});
