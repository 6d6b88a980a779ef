/** Python actors on a Ray of the tests' own. Real ones are in `real/python.full.test.ts`. */
import * as ray from "@rayling/core";
import { enableOnRay } from "@rayling/on-ray";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  addThere,
  Counter,
  type CounterClass,
  double,
  makeTill,
  namesThere,
} from "../../../test/fixtures/on-cluster.ts";
import { FakeRay } from "./fake-ray.ts";

enableOnRay();

interface Adder {
  add(by: number, times?: number): number;
  echo<Value>(value: Value): Value;
  fail(): never;
  stick(): number;
  vanish(): number;
  missing(): void;
}

async function session(
  options: ray.InitOptions = {},
  after: (close: () => Promise<void>) => void = onTestFinished,
): Promise<FakeRay> {
  vi.stubEnv("RAY_AUTH_TOKEN_PATH", "/none");
  const fake = await FakeRay.start({ CPU: 2 });
  after(async () => {
    await ray.shutdown();
    await fake.close();
    vi.unstubAllEnvs();
  });
  await ray.init({ address: `ray+${fake.url}`, ...options });
  return fake;
}

describe("in one session", () => {
  const closing: (() => Promise<void>)[] = [];
  let fake: FakeRay;
  beforeAll(async () => {
    fake = await session({}, (close) => void closing.push(close));
  });
  afterAll(async () => {
    for (const close of closing) await close();
  });

  test("a class by its import path: calls in order, keywords, refs, and Ray's options", async () => {
    const earlier = fake.python.made.length;
    const Adders = ray.python<Adder>("demo:Adder").options({ numCpus: 0.5, maxRestarts: 1 });
    const adder = Adders.remote(1);
    const sums = [1, 2, 3].map((by) => adder.add.remote(by));
    expect(await ray.get(sums)).toEqual([2, 4, 7]);
    expect(await ray.get(adder.add.remote(2, ray.keywords({ times: 3 })))).toBe(13);
    expect(await ray.get(adder.add.remote(double.remote(4)))).toBe(21);
    // The ref of a call is one like others.
    expect(await ray.get(double.remote(adder.add.remote(0)))).toBe(42);
    expect(fake.python.made.slice(earlier)).toEqual([{ num_cpus: 0.5, max_restarts: 1 }]);
  });

  test("arrays, dates and big integers arrive as they were sent", async () => {
    const adder = ray.python<Adder>("demo:Adder").remote();
    const sent = {
      array: new Float32Array([1, 2.5]),
      when: new Date(5),
      big: 2n ** 70n,
      none: null,
    };
    expect(await ray.get(adder.echo.remote(sent))).toEqual(sent);
  });

  test("arguments beyond the limit fail their own call", async () => {
    const adder = ray.python<Adder>("demo:Adder").remote();
    const large = ray.get(adder.echo.remote(new Uint8Array(50 * 2 ** 20)));
    await expect(large).rejects.toThrow(ray.RaySystemError);
    await expect(large).rejects.toThrow(
      /python_call .* has 6990\d{4} bytes, and may have 67108864/,
    );
    expect(await ray.get(adder.add.remote(1))).toBe(1);
  });

  test("an error in Python is the cause, with its traceback", async () => {
    const adder = ray.python<Adder>("demo:Adder").remote();
    const error: unknown = await ray.get(adder.fail.remote()).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ray.PythonTaskError);
    expect(error).toMatchObject({
      message: "Adder.fail raised KeyError: 'x'",
      cause: { name: "KeyError", traceback: expect.stringContaining('File "demo.py", line 3') },
    });
  });

  test("a cancelled call is over at once, and Ray is asked to end it", async () => {
    const adder = ray.python<Adder>("demo:Adder").remote();
    const begun = Promise.withResolvers<void>();
    fake.python.onStuck = begun.resolve;
    const stuck = adder.stick.remote();
    await begun.promise;
    expect(() => ray.cancel(stuck, { force: true })).toThrow(ray.InvalidOptionError);
    ray.cancel(stuck, { recursive: false });
    const error: unknown = await ray.get(stuck).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ray.TaskCancelledError);
    expect(error).toMatchObject({ taskId: stuck.id, taskName: "Adder.stick" });
    expect(await ray.get(adder.add.remote(1))).toBe(1);
    expect(fake.python.cancelled).toEqual([{ callId: stuck.id, recursive: false }]);
    ray.cancel(stuck);
    expect(await ray.get(adder.add.remote(1))).toBe(2);
    expect(fake.python.cancelled).toHaveLength(1);
  });

  test("a call that is cancelled before it is sent never runs, and a finished one keeps its value", async () => {
    const adder = ray.python<Adder>("demo:Adder").remote();
    const begun = Promise.withResolvers<void>();
    fake.python.onStuck = begun.resolve;
    const stuck = adder.stick.remote();
    const waits = adder.add.remote(stuck);
    const early = adder.add.remote(10);
    ray.cancel(early);
    ray.cancel(waits);
    await expect(ray.get(early)).rejects.toThrow(ray.TaskCancelledError);
    await expect(ray.get(waits)).rejects.toThrow(ray.TaskCancelledError);
    await begun.promise;
    const before = fake.python.cancelled.length;
    const added = adder.add.remote(1);
    expect(await ray.get(added)).toBe(1);
    ray.cancel(added);
    expect(await ray.get(added)).toBe(1);
    expect(fake.python.cancelled).toHaveLength(before);
    ray.cancel(stuck);
    await expect(ray.get(stuck)).rejects.toThrow(ray.TaskCancelledError);
  });

  test("what is not there rejects with what it is", async () => {
    const nobody = ray.python<Adder>("nobody");
    await expect(ray.get(nobody.add.remote(1))).rejects.toThrow(ray.ActorNotFoundError);
    await expect(ray.getActor("nobody")).rejects.toThrow(ray.ActorNotFoundError);
    const other = ray.python<Adder>("other:Class").remote();
    await expect(ray.get(other.add.remote(1))).rejects.toThrow(/ModuleNotFoundError in Ray/);
    const adder = ray.python<Adder>("demo:Adder").remote();
    await expect(ray.get(adder.missing.remote())).rejects.toThrow(ray.MethodNotFoundError);
  });

  test("a value that Python cannot have is refused at once, and so are a handle and an option", async () => {
    const adder = ray.python<Adder>("demo:Adder").remote();
    expect(() => adder.echo.remote(() => 1)).toThrow(/which Python cannot have/);
    expect(() => adder.echo.remote(adder)).toThrow(/handle of a Python actor has no JSON/);
    expect(() => ray.put(adder)).toThrow(ray.NotEncodableError);
    const wrong = { lifetime: "long" } as never;
    expect(() => ray.python("demo:Adder").options(wrong)).toThrow(/option lifetime/);
  });
});

test("actors by name, from the driver and from a task; a killed one is dead", async () => {
  await session();
  const counter = await ray.getActor<Adder>("counter");
  expect(await ray.get(counter.add.remote(1))).toBe(101);
  // Ray does not say that it died or is restarted.
  const unavailable = ray.get(counter.vanish.remote());
  await expect(unavailable).rejects.toMatchObject({
    code: "ACTOR_UNAVAILABLE",
    message: expect.stringMatching(
      /cannot be reached from here \(the node is out of reach\); the call may or may not have run$/,
    ),
  });
  expect(await ray.get(addThere.remote(2))).toBe(103);
  const same = ray.python<Adder>("counter");
  await ray.kill(same);
  await expect(ray.get(same.add.remote(1))).rejects.toThrow(ray.ActorDiedError);
  await expect(ray.get(counter.add.remote(1))).rejects.toThrow(ray.ActorDiedError);
});

test("names of the cluster's actors are listed with the session's own", async () => {
  const fake = await session({ namespace: "shop" });
  fake.python.namespace = "shop";
  const named = Counter.options({ name: "here" }).remote();
  const till = Counter.options({ lifetime: "detached", name: "till" }).remote();
  expect(await ray.get([named.add.remote(1), till.add.remote(1)])).toEqual([1, 1]);
  const names = ["here", "counter", "till"].map((name) => ({ name, namespace: "shop" }));
  expect(await ray.listNamedActors()).toEqual(names);
  expect(await ray.listNamedActors({ allNamespaces: true })).toEqual([
    ...names,
    { name: "counter", namespace: "elsewhere" },
  ]);
  expect(await ray.get(namesThere.remote())).toEqual(names);
  await ray.kill(till);
  await ray.kill(ray.python("counter"));
  expect(await ray.listNamedActors()).toEqual(names.slice(0, 1));
});

test("without a cluster there are no Python actors", async () => {
  onTestFinished(() => ray.shutdown());
  await ray.init({ numCpus: 1 });
  const adder = ray.python<Adder>("counter");
  await expect(ray.get(adder.add.remote(1))).rejects.toThrow(/need a session on a Ray cluster/);
  await expect(ray.getActor("counter")).rejects.toThrow(ray.ActorNotFoundError);
  expect(await ray.listNamedActors({ allNamespaces: true })).toEqual([]);
});

test("a detached actor of a class here is the cluster's: its code and its options go there", async () => {
  const fake = await session();
  const options = { lifetime: "detached", name: "till", maxRestarts: 1, numCpus: 1 } as const;
  const till = Counter.options(options).remote();
  expect(await ray.get([till.add.remote(1), till.add.remote(2)])).toEqual([1, 3]);
  expect(fake.python.made).toMatchObject([
    {
      key: { name: "CounterClass", moduleUrl: expect.stringMatching(/on-cluster\.ts$/) },
      methods: expect.arrayContaining(["add", "pid"]),
      streams: ["upTo"],
      options: { name: "till", lifetime: "detached", max_restarts: 1, max_concurrency: 1 },
      workingDir: expect.stringMatching(/^gcs:\/\/_ray_pkg_rayling_python_/),
    },
  ]);
  const same = await ray.getActor<CounterClass>("till");
  expect(await ray.get(same.add.remote(1))).toBe(4);
  // Tasks and actors make them, too.
  await expect(ray.get(makeTill.remote())).rejects.toThrow(ray.ActorAlreadyExistsError);
  expect(() => Counter.options({ ...options, isolation: "thread" }).remote()).toThrow(
    /a detached actor on a cluster cannot have isolation; it can have name, /,
  );
  await ray.kill(till);
  await expect(ray.get(same.add.remote(1))).rejects.toThrow(ray.ActorDiedError);
});
