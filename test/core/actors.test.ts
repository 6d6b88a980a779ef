import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Streaming } from "../fixtures/calls.ts";
import { alone, sharesMemory, together } from "../fixtures/isolation.ts";
import {
  Caller,
  Counter,
  type CounterClass,
  Failing,
  Founder,
  Held,
  lateClass,
  Lookalike,
  Meeting,
  Swapped,
  Tried,
} from "../fixtures/actors.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0, ...together }));
afterAll(() => ray.shutdown());

describe("an actor class as an argument", () => {
  test("makes actors where it arrives, with its options and further ones", async () => {
    const founder = Founder.remote();
    const made = await ray.get(founder.make.remote({ kinds: [Counter] }, 5));
    expect(await ray.get(made.increment.remote())).toBe(6);
    const named = await ray.get(founder.makeNamed.remote(Counter, "of a given class"));
    expect(await ray.get(named.read.remote())).toBe(1);
    const found = await ray.getActor<CounterClass>("of a given class");
    expect(await ray.get(found.increment.remote())).toBe(2);
    await ray.kill(named);
  });

  test("comes back with all that it is", async () => {
    const Back = await ray.get(Founder.remote().back.remote({ kind: Tried }));
    expect(Back).toBeTypeOf("object");
    expect(Back).not.toBe(Tried);
    expect(inspect(Back)).toContain("[ActorClass]");
    const tried = Back.remote();
    expect(await ray.get(tried.once.remote())).toBe(2);
    expect(await ray.get(tried.pair.remote())).toEqual(["one", "two"]);
    expect(await ray.get(tried.group.remote())).toBe("tried");
    const items: number[] = [];
    for await (const item of tried.two.remote()) items.push(await ray.get(item));
    expect(items).toEqual([1, 2]);
    expect(() => Back.options({ methods: {} } as never)).toThrow("can only be given to remote()");
  });

  test("may be put, and be anywhere in a value", async () => {
    const held = await ray.get(ray.put(new Map([["kinds", { Counter }]])));
    const counter = (held.get("kinds") ?? { Counter }).Counter.remote(3);
    expect(await ray.get(counter.read.remote())).toBe(3);
    expect(ray.inspectSerializability({ Counter })).toBeUndefined();
  });
});

describe("calls", () => {
  test("of one caller run in the order they were made", async () => {
    const counter = Counter.remote();
    for (let by = 0; by < 1000; by++) counter.increment.remote(by);
    expect(await ray.get(counter.log.remote())).toEqual(
      Array.from({ length: 1000 }, (_, by) => by),
    );
  });

  test("keep their order when arguments become ready in another", async () => {
    const gates = [Meeting.remote(), Meeting.remote(), Meeting.remote()];
    const counter = Counter.remote();
    for (const gate of gates) counter.increment.remote(gate.wait.remote());
    counter.increment.remote(7);
    for (const gate of gates.toReversed()) await ray.get(gate.open.remote());
    expect(await ray.get(counter.log.remote())).toEqual([1, 1, 1, 7]);
  });

  test("with a slow argument hold back their caller only", async () => {
    const gate = Meeting.remote();
    const counter = Counter.remote();
    const blocked = counter.increment.remote(gate.wait.remote());
    const other = Caller.remote();
    expect(await ray.get(other.callOther.remote(counter, 5))).toBe(5);
    gate.open.remote();
    expect(await ray.get(blocked)).toBe(6);
  });

  test("take refs at the top level as values and leave nested ones refs", async () => {
    const counter = Counter.remote();
    expect(await ray.get(counter.increment.remote(ray.put(5)))).toBe(5);
    const same = ray.put({ a: 1 });
    expect(await ray.get(counter.echo.remote(same, same))).toEqual([{ a: 1 }, { a: 1 }]);
    const [nested] = await ray.get(counter.echo.remote({ ref: same }));
    expect((nested as { ref: unknown }).ref).toBeInstanceOf(ray.ObjectRef);
  });

  test("with nested refs, still pending ones too, are answered", async () => {
    const counter = Counter.remote();
    const gate = Meeting.remote();
    const refs = [ray.put(1), counter.increment.remote(2), gate.wait.remote()];
    const sum = Caller.remote().sum.remote({ refs });
    gate.open.remote();
    expect(await ray.get(sum)).toBe(4);
  });

  test("of which an argument failed never run, and fail as their argument did", async () => {
    const counter = Counter.remote();
    const dependent = counter.increment.remote(counter.fail.remote("first"));
    await expect(ray.get(dependent)).rejects.toMatchObject({
      name: "BudgetError",
      message: "first",
    });
    expect(await ray.get(counter.log.remote())).toEqual([]);
  });

  test("snapshot their arguments when they are made", async () => {
    const counter = Counter.remote();
    const list = [1];
    const ref = counter.echo.remote(list);
    list.push(2);
    expect(await ray.get(ref)).toEqual([[1]]);
  });

  test.skipIf(!sharesMemory)(
    "are answered while a later one of the same turn holds the thread",
    async () => {
      const counter = Counter.remote();
      const cell = new Int32Array(new SharedArrayBuffer(4));
      const before = counter.increment.remote();
      const held = counter.waitFor.remote(cell);
      expect(await ray.get(before)).toBe(1);
      Atomics.store(cell, 0, 1);
      Atomics.notify(cell, 0);
      expect(["ok", "not-equal"]).toContain(await ray.get(held));
    },
  );

  test("may be made and forgotten on a temporary handle", async () => {
    expect(await ray.get(Counter.remote(3).increment.remote())).toBe(4);
  });

  test("see inherited methods, and arguments left out", async () => {
    const counter = Counter.remote();
    await ray.get(counter.increment.remote());
    expect(await ray.get(counter.read.remote())).toBe(1);
  });

  test("return a promise's value and keep a returned ref a ref", async () => {
    const inner = await ray.get(Caller.remote().makeRef.remote("inside"));
    expect(inner).toBeInstanceOf(ray.ObjectRef);
    expect(await ray.get(inner)).toBe("inside");
  });
});

describe("a handle", () => {
  test("explains a direct call and an unknown method", () => {
    const counter = Counter.remote() as unknown as Record<string, () => unknown>;
    expect(() => counter["increment"]?.()).toThrow("call increment.remote(...)");
    expect(() => counter["missing"]).toThrow(
      'CounterClass has no method "missing"; it has: increment',
    );
    expect(() => counter["constructorX"]).toThrow(TypeError);
  });

  test("has no methods of what every object has, and says so with a code", () => {
    const counter = Counter.remote() as unknown as Record<string, { remote(): unknown }>;
    for (const name of ["constructor", "toString", "valueOf", "hasOwnProperty", "missing"]) {
      expect(() => counter[name]?.remote(), name).toThrow(
        expect.objectContaining({ code: "METHOD_NOT_FOUND", method: name }) as Error,
      );
    }
    const toText = Reflect.get(counter, "toString") as unknown as () => string;
    expect(Reflect.apply(toText, counter, [])).toMatch(/^ActorHandle\(CounterClass, actor-\w+\)$/);
  });

  test("says that an object which its constructor has put in its place lacks the method", async () => {
    const call = ray.get(Swapped.remote().lost.remote());
    await expect(call).rejects.toThrow(
      'Swapped has a method "lost", and its object has not; that has: other (the constructor returned another object,',
    );
    await expect(call).rejects.toMatchObject({ code: "METHOD_NOT_FOUND", method: "lost" });
  });

  test("refuses fields and getters that hold functions by name, and says what to write", async () => {
    const lookalike = Lookalike.remote();
    expect(await ray.get(lookalike.method.remote())).toBe("field getter");
    const [travelled] = await ray.get(Counter.remote().echo.remote(lookalike));
    for (const handle of [lookalike, travelled as typeof lookalike]) {
      const refused = (call: () => unknown, method: string, why: string): void => {
        expect(call).toThrow(ray.MethodNotFoundError);
        expect(call).toThrow(
          expect.objectContaining({ className: "Lookalike", method }) as ray.MethodNotFoundError,
        );
        expect(call).toThrow(why);
      };
      refused(() => handle.field.remote(), "field", "fields and getters are not methods");
      refused(() => handle.field.remote(), "field", "field(...) { ... }");
      refused(() => handle["bound method"].remote(), "bound method", "not methods");
      refused(() => handle.getter.remote(), "getter", "getter is a getter");
      refused(() => handle.getter.options({ name: "x" }), "getter", "getter(...) { ... }");
      const untyped = handle as unknown as Record<string, { remote(): unknown }>;
      refused(() => untyped["number"]?.remote(), "number", "number is a getter");
      refused(() => untyped["writable"]?.remote(), "writable", "it has: method (");
    }
  });

  test("has no fields: setting one throws", () => {
    const counter = Counter.remote() as unknown as Record<string, unknown>;
    expect(() => (counter["foo"] = 1)).toThrow("foo cannot be set on that of CounterClass");
    expect(() => (counter["increment"] = 1)).toThrow(TypeError);
  });

  test("asks for no more values than there can be", () => {
    const counter = Counter.remote();
    expect(() => counter.read.options({ numReturns: 1e7 })).toThrow("at most 65536");
  });

  test("is not thenable and prints as what it is", async () => {
    const counter = Counter.remote();
    expect(await Promise.resolve(counter)).toBe(counter);
    expect(inspect({ counter })).toMatch(/^\{ counter: ActorHandle\(CounterClass, actor-\w+\) \}$/);
    expect(() => JSON.stringify({ counter })).toThrow("a handle of CounterClass may be passed");
    const ref = ray.put(1);
    expect(() => JSON.stringify([ref])).toThrow("an ObjectRef stands for a value");
    expect(() => JSON.stringify(Streaming.remote().count.remote(1))).toThrow("a stream of refs");
  });

  test("travels as argument and as result and reaches the same actor", async () => {
    const caller = Caller.options(alone).remote();
    const counter = Counter.options(alone).remote();
    expect(await ray.get(caller.callOther.remote(counter, 3))).toBe(3);
    expect(await ray.get(counter.read.remote())).toBe(3);
    const own = await ray.get(caller.giveOwn.remote());
    expect(await ray.get(own.increment.remote(5))).toBe(105);
    expect(await ray.get(caller.callOwn.remote())).toBe(106);
  });

  test("calls another one without the driver, which may be busy meanwhile", async () => {
    const [caller, counter] = [Caller.options(alone).remote(), Counter.options(alone).remote()];
    const folder = mkdtempSync(join(tmpdir(), "rayling-direct-"));
    const done = join(folder, "done");
    try {
      // That one asks where the other is.
      await ray.get(caller.callOther.remote(counter, 1));
      const all = caller.callMany.remote(counter, 100, done);
      // It leaves with this turn, in which nothing else is done.
      await new Promise((resolve) => setImmediate(resolve));
      const until = Date.now() + 100_000;
      while (!existsSync(done) && Date.now() < until);
      expect(existsSync(done)).toBe(true);
      expect(await ray.get(all)).toBe(101);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("reaches no fields, accessors or constructor", () => {
    const counter = Counter.remote() as unknown as Record<string, unknown>;
    expect(counter["constructor"]).toHaveProperty("name", "ActorHandle");
    expect(() => counter["n"]).toThrow('no method "n"');
  });
});

describe("an async actor", () => {
  test("runs many calls at once, which may wait for each other", async () => {
    const meeting = Meeting.remote();
    const waiting = Array.from({ length: 500 }, () => meeting.wait.remote());
    meeting.open.remote();
    await ray.get(waiting);
    expect(await ray.get(meeting.most.remote())).toBe(500);
  });

  test("has at most 1000 calls running by default; the rest wait their turn", async () => {
    const beside = { concurrencyGroup: "beside" } as const;
    const meeting = Meeting.remote();
    const waiting = Array.from({ length: 1500 }, () => meeting.wait.remote());
    while ((await ray.get(meeting.most.options(beside).remote())) < 1000);
    const { pending } = await ray.wait(waiting, { numReturns: 1, timeoutMs: 0 });
    expect(pending).toHaveLength(1500);
    meeting.open.options(beside).remote();
    expect(Math.max(...(await ray.get(waiting)))).toBe(1000);
  });

  test("with maxConcurrency 1 finishes one call before the next starts", async () => {
    const meeting = Meeting.options({ maxConcurrency: 1 }).remote();
    meeting.step.remote("a");
    meeting.step.remote("b");
    expect(await ray.get(meeting.events.remote())).toEqual([
      "a starts",
      "a ends",
      "b starts",
      "b ends",
    ]);
  });
});

describe("creation", () => {
  test("that throws fails every call with ActorDiedError holding the reason", async () => {
    const failing = Failing.remote("entrance");
    for (const ref of [failing.hello.remote(), failing.hello.remote()]) {
      const error = await ray.get(ref).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(ray.ActorDiedError);
      expect(error).toMatchObject({
        actorInitFailed: true,
        className: "Failing",
        deathCause: { kind: "init-failed" },
      });
      expect((error as Error).cause).toBeInstanceOf(RangeError);
      expect(((error as Error).cause as Error).message).toBe("no entrance — ü");
    }
  });

  test("of a class whose remote() did not run while its module loaded says so and where to move it", async () => {
    const error = await ray
      .get(lateClass().remote().hello.remote())
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "ACTOR_DIED", deathCause: { kind: "not-registered" } });
    expect(String(error)).toContain(
      "Call remote() once at the top level of the file that defines it",
    );
    expect(String(error)).toContain("fixtures/actors.ts");
  });

  test("with refs among the arguments takes their values, and keeps nested ones alive over a restart", async () => {
    expect(await ray.get(Counter.remote(ray.put(10)).increment.remote())).toBe(11);
    const held = Held.options({ maxRestarts: 1 }).remote({ ref: ray.put("kept") });
    expect(await ray.get(held.read.remote())).toBe("kept");
    await expect(ray.get(held.exit.remote())).rejects.toThrow(ray.ActorUnavailableError);
    expect(await ray.get(held.read.remote())).toBe("kept");
  });

  test("with a failed ref among the arguments gives a dead actor with that reason", async () => {
    const broken = Counter.remote(Counter.remote().fail.remote("no start"));
    await expect(ray.get(broken.read.remote())).rejects.toThrow(
      "a constructor argument failed: no start",
    );
  });

  test("refuses unknown and ill-typed options at once, naming them", () => {
    const bad: readonly [object, string][] = [
      [{ maxRestart: 1 }, 'has no option "maxRestart"'],
      [{ maxRestarts: -2 }, "option maxRestarts"],
      [{ maxRestarts: "3" }, 'not "3"'],
      [{ maxConcurrency: 0 }, "option maxConcurrency"],
      [{ name: "" }, "option name"],
      [{ name: 5 }, "option name"],
      [{ namespace: "  " }, "option namespace"],
      [{ getIfExists: true }, "getIfExists needs a name"],
      [{ numCpus: -1 }, "option numCpus"],
      [{ retryExceptions: [5] }, "option retryExceptions"],
      [{ runtimeEnv: { envs: {} } }, 'no part "envs"'],
      [{ runtimeEnv: { env: { A: 1 } } }, "env must map names to texts"],
      [{ __proto__: null, constructor: 1 }, 'has no option "constructor"'],
    ];
    for (const [options, message] of bad) {
      expect(() => Counter.options(options as never).remote(), message).toThrow(message);
    }
    expect(() => ray.remote(5 as never)).toThrow("remote takes a class or a function, not 5");
  });

  test("gives the actor the environment it asks for", async () => {
    const counter = Counter.options({ runtimeEnv: { env: { RAYLING_TEST: "inside" } } }).remote();
    expect(await ray.get(counter.environment.remote("RAYLING_TEST"))).toBe("inside");
    expect(process.env["RAYLING_TEST"]).toBeUndefined();
  });
});

describe("names", () => {
  test("find their actor from the driver and from other actors", async () => {
    const counter = Counter.options({ lifetime: "detached", name: "found" }).remote(1);
    const again = await ray.getActor<CounterClass>("found");
    expect(await ray.get(again.increment.remote())).toBe(2);
    expect(await ray.get(Caller.remote().named.remote("found"))).toBe(3);
    expect(await ray.get(counter.read.remote())).toBe(3);
    expect(await ray.listNamedActors()).toContainEqual(expect.objectContaining({ name: "found" }));
  });

  test("that are taken are refused, at once in the driver", async () => {
    Counter.options({ name: "taken", lifetime: "detached" }).remote();
    expect(() => Counter.options({ name: "taken", lifetime: "detached" }).remote()).toThrow(
      ray.ActorAlreadyExistsError,
    );
    await expect(ray.get(Caller.remote().createNamed.remote("taken", false))).rejects.toMatchObject(
      {
        code: "ACTOR_ALREADY_EXISTS",
        actorName: "taken",
      },
    );
  });

  test("are free again when their actor is dead", async () => {
    const first = Counter.options({ lifetime: "detached", name: "reused" }).remote(1);
    await ray.kill(first);
    await expect(ray.getActor("reused")).rejects.toThrow(ray.ActorNotFoundError);
    expect(
      await ray.get(
        Counter.options({ lifetime: "detached", name: "reused" }).remote(7).read.remote(),
      ),
    ).toBe(7);
  });

  test("are apart in each namespace", async () => {
    Counter.options({ lifetime: "detached", name: "twice", namespace: "left" }).remote(1);
    Counter.options({ lifetime: "detached", name: "twice", namespace: "right" }).remote(2);
    const right = await ray.getActor<CounterClass>("twice", { namespace: "right" });
    expect(await ray.get(right.read.remote())).toBe(2);
    await expect(ray.getActor("twice")).rejects.toThrow(ray.ActorNotFoundError);
    expect(await ray.listNamedActors({ allNamespaces: true })).toEqual(
      expect.arrayContaining([
        { name: "twice", namespace: "left" },
        { name: "twice", namespace: "right" },
      ]),
    );
  });

  test("with getIfExists give one actor to all who race for it", async () => {
    const make = Counter.options({ lifetime: "detached", name: "one", getIfExists: true });
    const handles = Array.from({ length: 5 }, () => make.remote());
    await ray.get(handles.map((handle) => handle.increment.remote()));
    const callers = [Caller.remote(), Caller.remote()];
    const seen = await ray.get(callers.map((caller) => caller.createNamed.remote("one", true)));
    expect(seen.toSorted((left, right) => left - right)).toEqual([6, 7]);
  });

  test("of actors that are about to end are free, also for who takes the one that there is", async () => {
    const make = Counter.options({ lifetime: "detached", name: "ending", getIfExists: true });
    const first = make.remote();
    await ray.get(first.increment.remote());
    const killed = ray.kill(first);
    const second = make.remote();
    expect(await ray.get(second.increment.remote())).toBe(1);
    await killed;
    const found = await ray.getActor<CounterClass>("ending");
    expect(await ray.get(found.increment.remote())).toBe(2);
  });

  test.each([[undefined], [null], [""], ["  "], [5]])("refuse %j", async (name) => {
    await expect(ray.getActor(name as never)).rejects.toThrow(ray.InvalidOptionError);
  });

  test("refuse an empty namespace", async () => {
    await expect(ray.getActor("x", { namespace: "" })).rejects.toThrow("namespace");
  });
});
