import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import {
  BadConstructor,
  callsFailing,
  Counter,
  failing,
  Holder,
  Mortal,
  plusOne,
  UserError,
} from "../fixtures/conformance.ts";
import { initIn, withinAndApart } from "../fixtures/isolations.ts";

const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => expect.fail(`expected a rejection, got ${String(value)}`),
    (error: unknown) => error,
  );

describe.each(withinAndApart)("errors: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test("test_basic::test_failed_task: a user's error is of its class and a task error, its fields and methods usable", async () => {
    const error = await caught(ray.get(failing.remote("no")));
    expect(error).toBeInstanceOf(UserError);
    expect(error).toBeInstanceOf(ray.TaskError);
    expect((error as UserError).field).toEqual({ inside: "field" });
    expect((error as UserError).method()).toBe("no/field");
  });

  test("test_traceback::test_exception_chain: through two tasks an error keeps its type and the stacks of both", async () => {
    const error = (await caught(ray.get(callsFailing.remote()))) as Error;
    expect(error).toBeInstanceOf(UserError);
    expect(error.message).toBe("from the task inside");
    const frames = (error.stack ?? "").split("\n");
    const inner = frames.findIndex((line) => /at failing /.test(line));
    const outer = frames.findIndex((line) => /callsFailing/.test(line));
    const here = frames.findIndex((line) => line.includes("errors.test.ts"));
    expect([inner, outer, here].every((index) => index > 0)).toBe(true);
    expect([inner, outer, here]).toEqual([inner, outer, here].toSorted((a, b) => a - b));
  });

  test("test_traceback::test_dep_failure: a failed argument keeps the callee from running, and its error goes on", async () => {
    const counter = Counter.remote();
    for (const ref of [
      counter.increment.remote(failing.remote("the argument")),
      plusOne.remote(failing.remote("the argument")),
      plusOne.remote(plusOne.remote(failing.remote("the argument"))),
    ]) {
      const error = await caught(ray.get(ref));
      expect(error).toBeInstanceOf(UserError);
      expect(error).toMatchObject({ message: "the argument" });
    }
    expect(await ray.get(counter.read.remote())).toBe(0);
  });

  test("test_actor::test_actor_init_error_propagated: a constructor that throws fails every call with its reason", async () => {
    const actor = BadConstructor.remote();
    for (const ref of [actor.hello.remote(), actor.hello.remote()]) {
      const error = await caught(ray.get(ref));
      expect(error).toBeInstanceOf(ray.ActorDiedError);
      expect(error).toMatchObject({ actorInitFailed: true, deathCause: { kind: "init-failed" } });
      expect((error as Error).cause).toBeInstanceOf(RangeError);
    }
  });

  test("test_actor_failures::test_utf8_actor_exception: text beyond ASCII arrives as it was", async () => {
    const error = (await caught(ray.get(BadConstructor.remote().hello.remote()))) as Error;
    expect((error.cause as Error).message).toBe("kaputt: ö, 漢字, 🙂");
    expect(error.message).toContain("kaputt: ö, 漢字, 🙂");
  });

  test("test_traceback::test_actor_creation_stacktrace: the stack of the constructor is in the error", async () => {
    const error = (await caught(ray.get(BadConstructor.remote().hello.remote()))) as Error;
    expect((error.cause as Error).stack).toMatch(/at new BadConstructor .*conformance\.ts/);
    expect(error.stack).toContain("errors.test.ts");
  });

  test("test_actor_failures::test_actor_failure_per_type: deaths are told apart, with the actor's id", async () => {
    const killed = Mortal.remote();
    await ray.get(killed.pid.remote());
    await ray.kill(killed);
    const exited = Mortal.remote();
    const owner = Holder.remote();
    const owned = await ray.get(owner.make.remote());
    await ray.get(owned.read.remote());
    await ray.kill(owner);
    const node = await new ray.Cluster().addNode({ resources: { extra: 1 } });
    const placed = Mortal.options({ resources: { extra: 1 } }).remote();
    await ray.get(placed.pid.remote());
    await new ray.Cluster().removeNode(node);
    const deaths = [
      await caught(ray.get(killed.pid.remote())),
      await caught(ray.get(exited.exit.remote(7))),
      await caught(ray.get(owned.read.remote())),
      await caught(ray.get(placed.pid.remote())),
    ];
    expect(deaths).toMatchObject([
      { name: "ActorDiedError", className: "MortalClass", deathCause: { kind: "killed" } },
      { deathCause: { kind: "exited", exitCode: 7 } },
      { className: "CounterClass", deathCause: { kind: "owner-died" } },
      { deathCause: { kind: "node-died" } },
    ]);
    for (const [index, actor] of [killed, exited, owned, placed].entries()) {
      const { actorId, message } = deaths[index] as ray.ActorDiedError;
      expect(inspect(actor)).toContain(actorId);
      expect(message).toContain(actorId);
    }
  });
});
