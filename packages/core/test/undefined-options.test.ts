import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CallOptions } from "../src/caller/call-options.ts";
import type { Caller } from "../src/caller/caller.ts";
import type { CallPlan } from "../src/caller/calls/call.ts";
import { setCurrentCaller } from "../src/caller/current.ts";
import { makeHandle, type HandleCaller, type UntypedMethod } from "../src/caller/handle.ts";
import type { ActorOptions, TaskOptions } from "../src/api/remote/options.ts";
import { remote } from "../src/api/remote/remote.ts";
import { Queue } from "../src/api/patterns/queue.ts";
import type { ActorInfo, ActorSpec } from "../src/rpc/directory.ts";
import { type InitOptions, readInitOptions } from "../src/runtime/init-options.ts";

class Plain {
  go(): number {
    return 1;
  }

  *items(): Generator<number> {
    yield 1;
  }
}

const PlainClass = remote(Plain);
const task = remote(function task(): number {
  return 1;
});

/** Takes what is sent, and sends nothing. */
const specs: ActorSpec[] = [];
const plans: CallPlan[] = [];
const handleCaller = {
  callActor: (_info: ActorInfo, one: CallPlan) => void plans.push(one),
} as unknown as HandleCaller;
const caller = {
  id: "driver",
  calls: { callTask: (one: CallPlan) => void plans.push(one) },
  starts: { prepare: () => undefined },
  directory: { register: (one: ActorSpec) => (specs.push(one), { state: "new" }) },
  createHandle: (info: ActorInfo) => makeHandle(info, handleCaller, undefined),
} as unknown as Caller;

beforeAll(() => setCurrentCaller(caller, "", false));
afterAll(() => {
  vi.unstubAllEnvs();
  setCurrentCaller(undefined, "", false);
});

/** An option that code passes on and that nobody gave. */
const absent = (name: string): object => ({ [name]: undefined });

type Handle = Readonly<Record<string, UntypedMethod>>;

interface Shown {
  readonly spec: unknown;
  readonly plans: readonly unknown[];
}

/** Shows the actor and the calls of both methods that a class with those options makes. */
function shownActor(made: { remote(): unknown }): Shown {
  const handle = made.remote() as Handle;
  const { info: { actorId: _, ...info } = {}, ...rest } = { ...specs.pop() };
  return { spec: { ...rest, info }, plans: ["go", "items"].map((name) => planOf(handle[name])) };
}

function planOf(called: { remote(): unknown } | undefined): unknown {
  called?.remote();
  // Each actor has an id of its own, and each task its times.
  const plan = plans.pop();
  return { ...plan, duration: 0, route: { ...plan?.route, target: "" } };
}

const scheduling = {
  numCpus: 3,
  numGpus: 1,
  memory: 1024,
  resources: { license: 1 },
  schedulingStrategy: "SPREAD",
  labelSelector: { zone: "a" },
  fallbackStrategy: [{ labelSelector: { zone: "b" } }],
};

const ofClass: Record<keyof Omit<ActorOptions, "methods" | "concurrencyGroups">, unknown> = {
  ...scheduling,
  name: "one",
  namespace: "other",
  getIfExists: true,
  maxRestarts: 2,
  restartIntensity: { restarts: 1, withinMs: 1000 },
  lifetime: "detached",
  maxTaskRetries: 2,
  retryExceptions: true,
  maxConcurrency: 4,
  allowOutOfOrderExecution: true,
  isolation: "process",
  threadName: "near",
  maxPendingCalls: 5,
  runtimeEnv: { env: { A: "1" } },
};

/** Options that another one needs. */
const needed: Readonly<Record<string, object>> = {
  getIfExists: { name: "one" },
  threadName: { isolation: "shared" },
  fallbackStrategy: { labelSelector: { zone: "a" } },
};

const ofTask: Record<keyof TaskOptions, unknown> = {
  ...scheduling,
  name: "one",
  isolation: "process",
  runtimeEnv: { env: { A: "1" } },
  maxRetries: 0,
  retryExceptions: [TypeError],
  numReturns: 2,
  generatorBackpressureNumObjects: 2,
  detached: true,
};

const ofMethod: Record<keyof Omit<CallOptions, "name">, unknown> = {
  maxTaskRetries: 2,
  retryExceptions: [TypeError],
  numReturns: 0,
  concurrencyGroup: "io",
  generatorBackpressureNumObjects: 2,
  detached: true,
};

describe("an option that is undefined is not given:", () => {
  test.each(Object.entries(ofClass))("%s of a class", (name, value) => {
    const base = PlainClass.options({ ...needed[name] });
    const own = base.options({ [name]: value });
    const shown = shownActor(own);
    expect(shown).not.toEqual(shownActor(base));
    expect(shownActor(own.options(absent(name)))).toEqual(shown);
    expect(shownActor(own.options({}))).toEqual(shown);
  });

  test("methods and concurrencyGroups of a class", () => {
    expect(
      PlainClass.options({ ...absent("methods"), ...absent("concurrencyGroups") }),
    ).toBeDefined();
  });

  test.each(Object.entries(ofTask))("%s of a function", (name, value) => {
    const base = task.options({ ...needed[name] });
    const own = base.options({ [name]: value });
    const shown = planOf(own);
    expect(shown).not.toEqual(planOf(base));
    expect(planOf(own.options(absent(name)))).toEqual(shown);
    expect(planOf(own.options({}))).toEqual(shown);
  });

  test.each(Object.entries(ofMethod))("%s of a method and of a call", (name, value) => {
    const own = remote(Plain, {
      concurrencyGroups: { io: 2 },
      methods: { go: { [name]: value }, items: absent(name) },
      module: import.meta.url,
      exportName: `With_${name}`,
    });
    const handle = own.remote() as unknown as Handle;
    const shown = planOf(handle["go"]);
    const other = PlainClass.remote() as unknown as Handle;
    expect(shown).not.toEqual(planOf(other["go"]));
    // The first one must not be what later calls get.
    expect(planOf(handle["go"]?.options(absent(name)))).toEqual(shown);
    expect(planOf(handle["go"]?.options({}))).toEqual(shown);
    expect(planOf(handle["go"]?.options(absent("name")))).toEqual(shown);
    // A generator method streams, whatever is not said of it.
    const streamed = planOf(other["items"]);
    expect(planOf(handle["items"])).toEqual(streamed);
    expect(planOf(handle["items"]?.options(absent(name)))).toEqual(streamed);
    expect(planOf(handle["items"]?.options({}))).toEqual(streamed);
  });

  test("in the options of a queue's actor", () => {
    const shownQueue = (options: object): unknown => {
      expect(new Queue({ actorOptions: options })).toBeDefined();
      const { info: { actorId: _, ...info } = {}, ...rest } = { ...specs.pop() };
      return { ...rest, info };
    };
    const standard = shownQueue({});
    for (const name of [
      ...Object.keys(ofClass),
      "methods",
      "concurrencyGroups",
      "maxConcurrency",
    ]) {
      expect(shownQueue(absent(name)), name).toEqual(standard);
    }
  });

  const ofInit: Record<keyof InitOptions, undefined> = {
    numCpus: undefined,
    numGpus: undefined,
    memory: undefined,
    resources: undefined,
    labels: undefined,
    address: undefined,
    bundles: undefined,
    nodes: undefined,
    reconnectTimeoutMs: undefined,
    runtimeEnv: undefined,
    tls: undefined,
    namespace: undefined,
    prewarm: undefined,
    objectStoreMemory: undefined,
    spillDirectory: undefined,
    development: undefined,
    isolation: undefined,
    stuckWarningMs: undefined,
    deadlocks: undefined,
    logToDriver: undefined,
    taskEvents: undefined,
    metricsPort: undefined,
    metricsToken: undefined,
    dashboard: undefined,
    controlSocket: undefined,
    ignoreReinitError: undefined,
  };

  test.each(["", "http://head:8265"])("of init, on the cluster %j", (cluster) => {
    vi.stubEnv("RAYLING_ON_RAY", cluster);
    const standard = readInitOptions({});
    for (const name of Object.keys(ofInit)) {
      expect(readInitOptions(absent(name)), name).toEqual(standard);
    }
    if (cluster === "") return;
    expect(readInitOptions({ runtimeEnv: absent("workingDir") }).runtimeEnv).toEqual({
      workingDir: true,
    });
  });
});
