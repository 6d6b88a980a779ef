import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { isAlone } from "../fixtures/isolation.ts";
import { sized } from "../fixtures/suite.ts";
import { add, Caller, fibonacci, hang, throwing } from "../fixtures/actors.ts";
import { Never, type orphan, Parent } from "../fixtures/endless.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterAll(() => ray.shutdown());

describe("tasks", () => {
  test("run, take refs as arguments and chain", async () => {
    let ref: ray.ObjectRef<number> = ray.put(0);
    for (let step = 0; step < 100; step++) ref = add.remote(ref, 1);
    expect(await ray.get(ref)).toBe(100);
  });

  test("run by the hundred, each once", async () => {
    const refs = Array.from({ length: 500 }, (_, index) => add.remote(index, index));
    expect(await ray.get(refs)).toEqual(Array.from({ length: 500 }, (_, index) => 2 * index));
  });

  test("may start tasks and wait for them, deeper than there are CPUs", async () => {
    const [n, value] = sized({ gate: [5, 5] as const, full: [7, 13] as const });
    expect(await ray.get(fibonacci.remote(n))).toBe(value);
  });

  test("may be started by actors", async () => {
    expect(await ray.get(Caller.remote().addInTask.remote(2, 3))).toBe(5);
  });

  test("fail with what they throw, and so do tasks that need their result", async () => {
    await expect(ray.get(add.remote(throwing.remote("chain"), 1))).rejects.toMatchObject({
      name: "BudgetError",
      message: "chain",
    });
  });

  test("of which an argument cannot travel throw at once", () => {
    expect(() => add.remote((() => 1) as never, 1)).toThrow("args[0] is a function");
  });

  test("that ask for more CPUs than there are wait, and say so; others run meanwhile", async () => {
    const warned = new Promise<Error>((resolve) => {
      process.on("warning", (warning) => warning.name === "RaylingWarning" && resolve(warning));
    });
    const starved = add.options({ numCpus: 64 }).remote(1, 2);
    expect((await warned).message).toContain("needs 64 CPU of 2");
    expect(await ray.get(add.remote(3, 4))).toBe(7);
    expect(await ray.wait([starved], { timeoutMs: 0 })).toEqual({ ready: [], pending: [starved] });
  });

  test("refuse unknown and ill-typed options", () => {
    expect(() => add.options({ maxRetry: 1 } as never)).toThrow('no option "maxRetry"');
    expect(() => add.options({ maxRetries: 1.5 })).toThrow("option maxRetries");
  });

  test.runIf(isAlone).each<[Parameters<typeof orphan.remote>[0], "kill" | "exit"]>([
    ["polls", "kill"],
    ["polls", "exit"],
    ["holds its thread", "kill"],
    ["waits", "kill"],
  ])(
    "of a caller that dies end with it, and are in nobody's way: it %s, after %s",
    async (how, end) => {
      const started = new ray.Queue<string>();
      const parent = Parent.remote();
      await ray.get(parent.leave.remote(how, started, Never.remote()));
      const worker = await started.get();
      if (end === "kill") await ray.kill(parent);
      else await ray.get(parent.exit.remote()).catch(() => undefined);
      // As many as there are CPUs: none of them stands behind it.
      expect(await ray.get([add.remote(1, 1), add.remote(2, 2)])).toEqual([2, 4]);
      const isAlive = async (): Promise<boolean> =>
        (await ray.state.listWorkers()).some((one) => one.workerId === worker && one.isAlive);
      await expect.poll(isAlive).toBe(false);
      await expect.poll(async () => (await ray.availableResources())["CPU"]).toBe(2);
      await started.shutdown();
    },
  );

  test("that hold every CPU are not in the way of a zero-CPU task", async () => {
    const hanging = [
      hang.options({ numCpus: 0.5 }).remote(),
      hang.options({ numCpus: 0.5 }).remote(),
    ];
    expect(await ray.get(add.options({ numCpus: 0 }).remote(1, 1))).toBe(2);
    expect((await ray.wait(hanging, { timeoutMs: 0 })).pending).toEqual(hanging);
  });
});
