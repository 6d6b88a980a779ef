/** `rayling stack` on real drivers: calls, waits, and stacks of threads that are held. */
import { beforeEach, expect, test, vi } from "vitest";
import { inProcess } from "./command.ts";
import { driver, json, ownDirectory } from "./driver.ts";

beforeEach(() => ownDirectory());

/** A look takes as long as its hosts are silent. */
const untilHangs = { timeout: 60_000 };

interface Row {
  readonly workerId: string;
  readonly thread: string;
  readonly stack: readonly string[];
  readonly calls: readonly { readonly name: string; readonly forMs: number }[];
}

async function rowsOf(...args: readonly string[]): Promise<readonly Row[]> {
  const { rows } = (await json("stack", ...args)) as { readonly rows: readonly Row[] };
  return rows;
}

test("code that holds a thread has a stack, what awaits has its name and what it waits for", async () => {
  const session = await driver();
  await session.ask("computeAndRest");
  const [busy] = await rowsOf("busy");
  expect(busy).toMatchObject({
    workerType: "WORKER",
    isolation: "thread",
    pid: session.pid,
    thread: "BUSY",
    actors: [{ className: "Grader", name: "busy" }],
    calls: [{ name: "Grader.compute", state: "RUNNING", isOnStack: true }],
  });
  expect(busy?.stack.at(-1)).toMatch(/Grader\.compute .*fixtures\/driver\.ts:\d+:\d+\)$/);
  // The runtime's own frames are left out.
  expect(busy?.stack.join("\n")).not.toContain("packages/core");
  // It goes on, and has gone on.
  const [later] = await rowsOf(busy?.workerId ?? "");
  expect(later?.calls[0]?.forMs).toBeGreaterThan(busy?.calls[0]?.forMs ?? Infinity);
  expect(await rowsOf("resting")).toMatchObject([
    {
      thread: "FREE",
      stack: [],
      calls: [{ name: "Grader.rest", state: "RUNNING", isOnStack: false }],
    },
  ]);
  expect(await rowsOf("waits")).toMatchObject([
    {
      calls: [{ name: "Grader.rest", state: "RUNNING_IN_RAY_GET" }],
      waits: [{ what: "get", waitsFor: ["Grader.rest"], count: 1 }],
    },
  ]);
  const { stdout } = await inProcess("stack");
  expect(stdout).toMatch(
    /^thread host-\w+, process \d+: code holds its thread\n {2}actor Grader "busy" actor-\w+\n {2}Grader\.compute, for [\d.:]+ \w+: holds the thread\n(?: {6}at .*\n)* {6}at .*Grader\./m,
  );
  expect(stdout).toMatch(/^ {2}Grader\.rest, for [\d.:]+ \w+: awaits something$/m);
  expect(stdout).toMatch(/^ {2}Grader\.rest, for [\d.:]+ \w+: waits in get for Grader\.rest$/m);
  expect(stdout).toMatch(/^driver, process \d+: its thread is free$/m);
  // Names of others do nothing to a terminal.
  expect(stdout).not.toContain("\u001b");
});

test("a thread that sleeps in Atomics.wait is seen, its driver goes on, and what is not there is one clear line", async () => {
  const session = await driver();
  const none = await inProcess("stack", "nobody");
  expect(none).toMatchObject({ code: 1, stdout: "" });
  expect(none.stderr).toBe("rayling: no worker or living actor has the id, name or class nobody\n");
  await session.ask("holdGrader");
  const rows = await rowsOf("Grader");
  const held = rows.find(({ thread }) => thread === "BUSY");
  expect(held?.calls).toMatchObject([{ name: "Grader.hold", isOnStack: true }]);
  expect(held?.stack).toMatchObject([
    "Atomics.wait (<anonymous>)",
    expect.stringContaining("Grader.hold") as string,
  ]);
  expect(await session.ask("list", "Actors", {})).toMatchObject({ missing: [] });
});

test("a process that does not answer is said to be silent, with what was sent to it", async () => {
  const session = await driver();
  await session.ask("holdProcess");
  await vi.waitFor(async () => {
    expect(await rowsOf("own", "--timeout", "300")).toMatchObject([
      {
        isolation: "process",
        thread: "SILENT",
        reason: expect.stringContaining("holds the thread of its process") as string,
        stack: [],
        sent: [{ name: "Grader.compute" }],
      },
    ]);
  }, untilHangs);
  const { stdout } = await inProcess("stack", "own", "--timeout", "300");
  expect(stdout).toMatch(/^process host-\w+, process \d+: does not answer$/m);
  expect(stdout).toMatch(/^ {2}sent to it and not answered: Grader\.compute$/m);
});
