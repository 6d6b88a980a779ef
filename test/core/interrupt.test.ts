import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Log, Signal } from "../fixtures/conformance.ts";
import {
  type Awaits,
  givesUp,
  type Handles,
  Interrupted,
  interruptedTask,
  Never,
  stubborn,
} from "../fixtures/interrupted.ts";
import { sized } from "../fixtures/suite.ts";

/** They need no CPU to start. */
const besides = { numCpus: 0 } as const;
/** And no host of their own: they hold up others, or note what those do. */
const witness = { ...besides, isolation: "shared" } as const;

beforeAll(() => ray.init({ numCpus: 1, prewarm: 0 }));
afterAll(() => ray.shutdown());

const cancelled = async (ref: ray.ObjectRef): Promise<void> => {
  await expect(ray.get(ref)).rejects.toBeInstanceOf(ray.TaskCancelledError);
};

describe.each(["actor", "task"])("running code of a cancelled call: %s", (kind) => {
  const some: readonly [Awaits, string][] = [
    ["get", "TASK_CANCELLED"],
    ["nothing of it", "goes on"],
    ["get of own task", "TASK_CANCELLED"],
  ];
  const all: readonly [Awaits, string][] = [
    ...some,
    ["wait", "TASK_CANCELLED"],
    ["next", "TASK_CANCELLED"],
    ["signal", "TASK_CANCELLED"],
    ["wait for own task", "TASK_CANCELLED"],
    ["next of own task", "TASK_CANCELLED"],
  ];
  // What waits is the same code in a task: the gate has all of it in an actor.
  test.each(kind === "actor" ? all : sized({ gate: some, full: all }))(
    "that awaits %s: %s, once, and what it does then may await",
    async (what, line) => {
      const handles: Handles = {
        never: Never.options(witness).remote(),
        log: Log.options(witness).remote(),
        done: Signal.options(witness).remote(),
      };
      const actor = Interrupted.options(besides).remote();
      const call =
        kind === "task" ? interruptedTask.remote(what, handles) : actor.run.remote(what, handles);
      while ((await ray.get(handles.log.lines.remote())).length === 0);
      for (let round = 0; round < 20; round++) await ray.get(handles.log.lines.remote());
      ray.cancel(call, { recursive: what.endsWith("own task") });
      await cancelled(call);
      await ray.get(handles.done.wait.remote());
      expect(await ray.get(handles.log.lines.remote())).toEqual(
        line === "goes on" ? ["begins", line] : ["begins", line, "cleans up"],
      );
      expect(await ray.get(actor.hello.remote())).toBe("hello");
    },
  );
});

describe("a worker runs one task at a time", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "interrupt-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const notes = (): string => join(folder, "notes");
  const end = (): string => join(folder, "end");
  const noted = (): string[] =>
    existsSync(notes()) ? readFileSync(notes(), "utf8").trim().split("\n") : [];

  /** Until one has begun, and there was much time for others. */
  async function begun(): Promise<void> {
    const log = Log.options(witness).remote();
    while (noted().length === 0) await ray.get(log.lines.remote());
    for (let round = 0; round < 200; round++) await ray.get(log.lines.remote());
    expect(noted()).toEqual(["begins"]);
    expect((await ray.availableResources())["CPU"] ?? 0).toBe(0);
  }

  test("also while a cancelled one goes on in it", async () => {
    const task = stubborn.remote(notes(), end());
    await begun();
    ray.cancel(task);
    await cancelled(task);
    const next = stubborn.remote(notes(), end());
    await begun();
    writeFileSync(end(), "");
    expect(await ray.get(next)).toBe("ended");
    expect(noted()).toEqual(["begins", "ends", "begins", "ends"]);
  });

  test("a cancelled one that goes on can be ended by force, which makes room for others", async () => {
    const task = stubborn.remote(notes(), end());
    await begun();
    ray.cancel(task);
    await cancelled(task);
    ray.cancel(task, { force: true });
    writeFileSync(join(folder, "other end"), "");
    const next = stubborn.remote(notes(), join(folder, "other end"));
    expect(await ray.get(next)).toBe("ended");
  });

  test("also after one that did not wait to the end for what it waited for", async () => {
    const never = Never.options(witness).remote();
    // A worker takes the next one, too, if it has loaded what they need.
    expect(await ray.get(givesUp.remote({ never }))).toBe("gave up");
    const last = stubborn.remote(notes(), end(), givesUp.remote({ never }));
    await begun();
    writeFileSync(end(), "");
    expect(await ray.get(last)).toBe("ended");
  });
});
