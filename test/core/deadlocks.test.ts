import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { callBack, Knot, type KnotClass, Late } from "../fixtures/deadlocks.ts";

beforeAll(() => ray.init({ numCpus: 4, prewarm: 0, stuckWarningMs: 0 }));
afterAll(() => ray.shutdown());

type Handle = ray.ActorHandle<KnotClass>;

async function start(): Promise<Handle> {
  const knot = Knot.remote();
  await ray.get(knot.echo.remote());
  return knot;
}

async function failureOf(ref: ray.ObjectRef): Promise<ray.DeadlockError> {
  const error = await ray.get(ref).then(
    (value: unknown) => expect.unreachable(`it gave ${String(value)}`),
    (failure: unknown) => failure,
  );
  expect(error).toBeInstanceOf(ray.DeadlockError);
  return error as ray.DeadlockError;
}

describe("what waits for itself rejects, and names the cycle", () => {
  test("a call that waits for another one of its own actor, which runs one at a time", async () => {
    const knot = await start();
    const ref = knot.run.remote();
    const error = await failureOf(ref);
    expect(error.code).toBe("DEADLOCK");
    expect(error.taskId).toBe(ref.id);
    expect(error.taskName).toBe("KnotClass.run");
    expect(error.cycle).toEqual([
      expect.stringMatching(
        new RegExp(`^KnotClass.run \\(${ref.id}\\) waits in get for KnotClass.echo \\(host-.*\\)$`),
      ),
      expect.stringMatching(
        new RegExp(
          `^KnotClass.echo \\(host-.*\\) waits for a place in actor KnotClass \\(actor-.*\\), which runs 1 call at a time: KnotClass.run \\(${ref.id}\\)$`,
        ),
      ),
    ]);
    expect(error.message).toContain(error.cycle.join("\n  "));
    // The actor goes on.
    expect(await ray.get(knot.count.remote())).toBe(1);
  });

  test("the code that waits can catch it", async () => {
    const knot = await start();
    expect(await ray.get(knot.caught.remote())).toMatchObject({
      name: "DeadlockError",
      code: "DEADLOCK",
      isOne: true,
      cycle: [expect.stringContaining("KnotClass.caught"), expect.any(String)],
    });
  });

  test.each(["waits", "streams", "list"] as const)("by a %s", async (how) => {
    const knot = await start();
    const ref = how === "list" ? knot.list.remote([ray.put(1)]) : knot[how].remote();
    await failureOf(ref);
    expect(await ray.get(knot.count.remote())).toBe(1);
  });

  test("a call of a group whose places are taken, whatever is free elsewhere", async () => {
    const knot = await start();
    const group = { concurrencyGroup: "own" } as const;
    // It waits for a call of the default group, which is free.
    expect(await ray.get(knot.run.options(group).remote())).toBe("self");
    await failureOf(knot.run.remote());
  });

  test("calls that take all places of a group, each waiting for one more: the last rejects", async () => {
    const knot = await start();
    const pair = { concurrencyGroup: "pair" } as const;
    const [first, second] = [0, 1].map(() => knot.runIn.options(pair).remote("pair")) as [
      ray.ObjectRef,
      ray.ObjectRef,
    ];
    const error = await failureOf(second);
    expect(error.cycle.join()).toContain("which runs 2 calls at a time");
    expect(await ray.get(first)).toBe("pair");
  });

  test("two actors that ask each other: the later wait rejects, and its caller hears of it", async () => {
    const [first, second] = [await start(), await start()];
    const ref = first.ask.remote(second, first);
    const error = await failureOf(ref);
    expect(error.cycle).toHaveLength(3);
    expect(error.taskName).toBe("KnotClass.ask");
    expect(error.taskId).not.toBe(ref.id);
    for (const one of [first, second]) expect(await ray.get(one.count.remote())).toBe(1);
  });

  test("an actor that waits for a task which calls it", async () => {
    const knot = await start();
    const error = await failureOf(knot.throughTask.remote());
    expect(error.taskName).toBe("callBack");
    expect(error.cycle).toEqual([
      expect.stringMatching(/^callBack .* waits in get for KnotClass.echo/),
      expect.stringMatching(/^KnotClass.echo .* waits for a place in actor KnotClass/),
      expect.stringMatching(/^KnotClass.throughTask .* waits in get for callBack/),
    ]);
    await failureOf(knot.throughArgument.remote());
    expect(await ray.get(knot.count.remote())).toBe(1);
  });

  test("a call that waits for a task which calls its actor later", async () => {
    const [knot, other] = [await start(), await start()];
    const later = callBack.remote(knot, other.slow.remote(150));
    await failureOf(knot.read.remote([later]));
    expect(await ray.get(knot.count.remote())).toBe(1);
  });

  test("actors in hosts of each kind", async () => {
    const kinds = ["thread", "process", "shared"] as const;
    const knots = kinds.map((isolation) => Knot.options({ isolation }).remote());
    for (const [index, knot] of knots.entries()) {
      const next = knots[(index + 1) % knots.length] as Handle;
      const error = await failureOf(knot.ask.remote(next, knot));
      expect(error.cycle).toHaveLength(3);
    }
  });

  test("an actor that is created with what waits for its first call", async () => {
    const knot = await start();
    const name = "an actor that is created late";
    const late = Late.options({ name }).remote(knot.named.remote(name));
    const error = await ray.get(late.echo.remote(1)).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(ray.ActorDiedError);
    expect((error as Error).message).toContain("is not created before its argument is there");
  });
});

describe("what may end by itself is left alone", () => {
  test.each([
    ["timed", "GetTimeoutError"],
    ["signalled", "TimeoutError"],
    ["timedWait", 0],
    ["raced", "the timer"],
    ["floating", "ended"],
  ] as const)("%s", async (method, expected) => {
    const knot = await start();
    expect(await ray.get(knot[method].remote())).toBe(expected);
    expect(await ray.get(knot.count.remote())).toBe(1);
  });

  test("a call that waits for a slow one, with others behind it", async () => {
    const [knot, other] = [await start(), await start()];
    const ref = knot.slowly.remote(other);
    const behind = [knot.count.remote(), knot.count.remote()];
    expect(await ray.get([ref, ...behind])).toEqual(["slow", 1, 2]);
  });

  test("what the code of the driver may end: a call that is cancelled, an actor that is killed", async () => {
    const [knot, other] = [await start(), await start()];
    const slow = other.slow.remote(1e6);
    const [reading, counted] = [knot.read.remote([slow]), knot.count.remote()];
    ray.cancel(slow);
    await expect(ray.get(reading)).rejects.toBeInstanceOf(ray.TaskCancelledError);
    expect(await ray.get(counted)).toBe(1);
  });
});

test("timers and servers that an actor has anyhow do not matter", async () => {
  const knot = await start();
  await ray.get(knot.begin.remote());
  await failureOf(knot.run.remote());
  expect(await ray.get(knot.count.remote())).toBeGreaterThan(0);
});

test("a get that nobody awaits rejects, and that is no failure of anybody", async () => {
  const knot = await start();
  expect(await ray.get(knot.unawaited.remote())).toBe("DeadlockError");
  expect(await ray.get(knot.count.remote())).toBe(1);
});

describe('with deadlocks: "warn"', () => {
  test("it is told once, and goes on", async () => {
    await ray.shutdown();
    await ray.init({ numCpus: 4, prewarm: 0, stuckWarningMs: 0, deadlocks: "warn" });
    const knot = await start();
    const warning = await ray.get(knot.warned.remote());
    expect(warning).toMatch(/^get in KnotClass.warned \(.*\) waits for itself:\n/);
    expect(await ray.get(knot.count.remote())).toBe(1);
  });

  test("anything else is refused", async () => {
    await ray.shutdown();
    const init = ray.init({ deadlocks: "ignore" as never });
    await expect(init).rejects.toThrow('option deadlocks must be "reject" or "warn"');
  });
});
