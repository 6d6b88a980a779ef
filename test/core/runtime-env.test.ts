import { mkdtemp, readFile as read, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, assert, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { type Found, Heir, heir, type HeirClass, type Start } from "../fixtures/heirs.ts";
import { Permitted, readFile } from "../fixtures/permitted.ts";
import { sized } from "../fixtures/suite.ts";
import { Resident } from "../fixtures/processes.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-env-"));
  await writeFile(join(folder, "given.txt"), "given");
  await writeFile(join(folder, "bad.mjs"), "throw new RangeError('preload failed')");
  await ray.init({ numCpus: 4, prewarm: 0 });
});
afterAll(async () => {
  await ray.shutdown();
  await rm(folder, { recursive: true, force: true });
});

const given = (): string => join(folder, "given.txt");
const caught = (ref: ray.ObjectRef): Promise<unknown> =>
  ray.get(ref).then(
    (value) => expect.fail(`expected a rejection, got ${String(value)}`),
    (error: unknown) => error,
  );

describe.each(["thread", "process"] as const)("in a %s, permissions", (isolation) => {
  const allowed = (permissions: ray.Permissions): typeof Permitted =>
    Permitted.options({ isolation, runtimeEnv: { permissions } });

  /** What has no rights of its own; each case has another use of it. */
  let strict: ReturnType<typeof Permitted.remote>;
  beforeAll(() => {
    strict = allowed({}).remote();
  });

  test("let it run its own module and no more", async () => {
    const actor = strict;
    expect(await ray.get(actor.echo.remote({ a: [1] }))).toEqual({ a: [1] });
    const outside = "/etc/hostname";
    for (const ref of [
      actor.read.remote(outside),
      actor.read.remote(given()),
      actor.write.remote(join(folder, "new.txt"), "x"),
      actor.run.remote(),
      actor.startWorker.remote(),
      actor.temporary.remote(),
    ]) {
      expect(await caught(ref)).toMatchObject({ code: "ERR_ACCESS_DENIED" });
    }
    // The driver keeps all its rights.
    expect(await read(given(), "utf8")).toBe("given");
  });

  test("give what they name", async () => {
    const actor = allowed({
      allowFsRead: [folder],
      allowFsWrite: [folder],
      allowChildProcess: true,
      allowWorker: true,
    }).remote();
    expect(await ray.get(actor.read.remote(given()))).toBe("given");
    await ray.get(actor.write.remote(join(folder, `${isolation}.txt`), "written"));
    expect(await read(join(folder, `${isolation}.txt`), "utf8")).toBe("written");
    expect(await ray.get(actor.run.remote())).toBe("1\n");
    await ray.get(actor.startWorker.remote());
  });

  test("leave calls to others, and large values, as they are", async () => {
    const [left, right] = [strict, allowed({}).remote()];
    const plain = Permitted.options({ isolation }).remote();
    expect(await ray.get([left.ask.remote(right), plain.ask.remote(left)])).toEqual([
      "asked",
      "asked",
    ]);
    const large = new Float64Array(100_000).fill(1.5);
    expect(await ray.get(left.echo.remote(large))).toEqual(large);
  });

  test("hold for tasks", async () => {
    const task = readFile.options({ isolation, runtimeEnv: { permissions: {} } });
    expect(await caught(task.remote(given()))).toMatchObject({ code: "ERR_ACCESS_DENIED" });
    expect(await ray.get(readFile.options({ isolation }).remote(given()))).toBe("given");
  });
});

describe("execArgv", () => {
  test.each([
    ["thread", "--no-deprecation"],
    ["process", "--stack-trace-limit=3"],
  ] as const)(
    "of a %s may be %s, beside the driver's on how modules are found",
    async (isolation, flag) => {
      const actor = Permitted.options({ isolation, runtimeEnv: { execArgv: [flag] } }).remote();
      const conditions = process.execArgv.filter((own) => own.startsWith("--conditions="));
      expect(conditions).toHaveLength(1);
      expect(await ray.get(actor.flags.remote())).toEqual(
        expect.arrayContaining([flag, ...conditions]),
      );
    },
  );

  test.each<[string, readonly unknown[], string]>([
    ["that Node does not have", ["--no-such-flag"], "must not contain --no-such-flag"],
    ["that say what to run", ["--eval=1"], "must not contain --eval=1"],
    ["that are permissions", ["--allow-fs-read=*"], "give permissions"],
    ["that turn permissions on", ["--permission"], "give permissions"],
    ["in two pieces", ["--import", "tsx"], 'not "tsx"'],
    ["that are no texts", [5], "not 5"],
  ])("refuses flags %s at once", (_name, execArgv, message) => {
    const make = (): unknown => Permitted.options({ runtimeEnv: { execArgv: execArgv as never } });
    expect(make).toThrow(ray.InvalidOptionError);
    expect(make).toThrow(message);
  });

  test.each(["thread", "process"] as const)(
    "that does not work ends a %s with RuntimeEnvSetupError, whatever restarts are left",
    async (isolation) => {
      const runtimeEnv = { execArgv: [`--import=${join(folder, "bad.mjs")}`] };
      const actor = Permitted.options({ isolation, runtimeEnv, maxRestarts: -1 }).remote();
      const error = await caught(actor.echo.remote(1));
      expect(error).toBeInstanceOf(ray.RuntimeEnvSetupError);
      expect((error as Error).message).toContain("preload failed");
      const task = readFile.options({ isolation, runtimeEnv, maxRetries: -1 }).remote(given());
      expect(await caught(task)).toBeInstanceOf(ray.RuntimeEnvSetupError);
    },
  );

  // Each mode and each isolation once: what is done with the flag is the same for all.
  const modes = [
    ["thread", "none"],
    ["process", "warn-with-error-code"],
  ] as const;
  const others = [
    ["thread", "warn-with-error-code"],
    ["process", "none"],
  ] as const;
  test.each(sized({ gate: [...modes], full: [...modes, ...others] }))(
    "lets an actor in a %s live on with --unhandled-rejections=%s",
    async (isolation, mode) => {
      const runtimeEnv = { execArgv: [`--unhandled-rejections=${mode}`] };
      const actor = Resident.options({ isolation, runtimeEnv }).remote();
      await ray.get(actor.reject.remote("nobody hears of it"));
      expect(await ray.get(actor.echo.remote(1))).toBe(1);
    },
  );

  test("that a thread cannot have is a RuntimeEnvSetupError; a process can", async () => {
    const runtimeEnv = { execArgv: ["--max-old-space-size=64"] };
    const thread = Permitted.options({ isolation: "thread", runtimeEnv }).remote();
    const error = await caught(thread.echo.remote(1));
    expect(error).toMatchObject({ code: "RUNTIME_ENV_SETUP" });
    expect((error as Error).message).toContain("max-old-space-size");
    const actor = Permitted.options({ isolation: "process", runtimeEnv }).remote();
    expect(await ray.get(actor.flags.remote())).toContain("--max-old-space-size=64");
  });
});

describe("runtimeEnv", () => {
  test.each<[object, string]>([
    [{ envs: {} }, 'no part "envs"'],
    [{ env: { A: 1 } }, "env must map names to texts"],
    [{ resourceLimits: { heap: 1 } }, 'no limit "heap"'],
    [{ env: { "A=B": "1" } }, 'that no environment can hold ("A=B")'],
    [{ env: { "": "1" } }, "that no environment can hold"],
    [{ env: { A: "1\0" } }, 'that no environment can hold ("A")'],
    [{ execArgv: ["--inspect=0.0.0.0:0"] }, "must not contain --inspect=0.0.0.0:0"],
    [{ execArgv: ["--debug-port=1"] }, "must not contain --debug-port=1"],
    [{ resourceLimits: { maxOldGenerationSizeMb: -1 } }, "positive numbers"],
    [{ resourceLimits: { stackSizeMb: Number.POSITIVE_INFINITY } }, "positive numbers"],
    [
      { resourceLimits: { maxOldGenerationSizeMb: 1 } },
      ".maxOldGenerationSizeMb must be at least 16",
    ],
    [{ resourceLimits: { maxOldGenerationSizeMb: 15.9 } }, "must be at least 16"],
    [{ resourceLimits: { stackSizeMb: 0.1 } }, ".stackSizeMb must be at least 0.5"],
    [{ permissions: { allowRead: [] } }, 'no "allowRead"'],
    [{ permissions: { allowFsRead: "x" } }, "allowFsRead must be a list of paths"],
    [{ permissions: { allowWorker: 1 } }, "allowWorker must be true or false"],
    [{ permissions: [] }, "must be an object"],
    [{ workingDir: false }, "workingDir must be true or a folder"],
    [{ workingDir: " " }, "workingDir must be true or a folder"],
    [{ workingDir: "./not/there" }, `must be an existing folder, not "./not/there"`],
    [{ workingDir: "package.json" }, "must be an existing folder"],
    [{ excludes: "x" }, "excludes must be a list of texts"],
    [{ excludes: [""] }, "excludes must be a list of texts"],
  ])("%j is refused at once", (runtimeEnv, message) => {
    expect(() => Permitted.options({ runtimeEnv })).toThrow(message);
    expect(() => readFile.options({ runtimeEnv })).toThrow(message);
  });

  test.each(["thread", "process"] as const)(
    "the least that is taken is enough for a worker, and its end takes nobody along: %s",
    async (isolation) => {
      const resourceLimits = { maxOldGenerationSizeMb: 16, stackSizeMb: 0.5 };
      const actor = Permitted.options({ isolation, runtimeEnv: { resourceLimits } }).remote();
      expect(await ray.get(actor.echo.remote(1))).toBe(1);
    },
  );
});

describe("what the code of an actor starts inherits", () => {
  const env = { FIRST: "parent", SECOND: "parent" };
  const own = { runtimeEnv: { env: { SECOND: "own, not ${SECOND}" } } };
  const denied = "ERR_ACCESS_DENIED";
  const paths = (): string[] => [given(), "/etc/hostname"];
  const confined = (
    isolation: "thread" | "process",
    more: ray.Permissions = {},
  ): ray.ActorHandle<HeirClass> => {
    const permissions = { allowFsRead: [folder], ...more };
    return Heir.options({ isolation, runtimeEnv: { env, permissions } }).remote();
  };

  test.each<["thread" | "process", readonly (readonly Start[])[]]>([
    [
      "thread",
      [
        [{ isolation: "shared" }, { is: "task", ...own }, { is: "task" }, {}],
        [{ isolation: "process" }],
      ],
    ],
    ["process", [[{}], [{ is: "task" }]]],
  ])("its variables and permissions, in a %s and at every distance", async (isolation, chains) => {
    const parent = confined(isolation);
    const found = await ray.get(chains.map((chain) => parent.start.remote(chain, paths())));
    for (const [index, chain] of chains.entries()) {
      const second = chain.some((one) => "runtimeEnv" in one) ? "own, not parent" : "parent";
      const expected = { variables: ["parent", second], files: ["read", denied] };
      expect(found[index], JSON.stringify(chain)).toMatchObject(expected);
    }
    // Nothing of it is left in a worker or a shared thread for those who did not ask for it.
    const free = { variables: [undefined, undefined], files: ["read", "read"] };
    expect(await ray.get(heir.remote([], paths()))).toMatchObject(free);
    const shared = Heir.options({ isolation: "shared" }).remote();
    expect(await ray.get(shared.start.remote([], paths()))).toMatchObject(free);
  });

  test("permissions that it may make narrower, and not wider", async () => {
    const parent = confined("thread", { allowChildProcess: true });
    const started = (start: Start): ray.ObjectRef<Found> => parent.start.remote([start], paths());
    const asking = (permissions: ray.Permissions): Start => ({ runtimeEnv: { permissions } });
    expect((await ray.get(started(asking({})))).files).toEqual([denied, denied]);
    const same = asking({ allowFsRead: [given()], allowChildProcess: true });
    expect((await ray.get(started({ is: "task", ...same }))).files).toEqual(["read", denied]);
    const wider: readonly [Start, string][] = [
      [asking({ allowFsRead: [given(), "/etc"] }), 'permissions.allowFsRead asks for "/etc"'],
      [asking({ allowFsWrite: [folder] }), "permissions.allowFsWrite asks for"],
      [asking({ allowWorker: true }), "permissions.allowWorker is asked for"],
      [{ runtimeEnv: { env: { NODE_OPTIONS: "--allow-fs-read=*" } } }, "env.NODE_OPTIONS"],
    ];
    for (const [start, message] of wider) {
      for (const is of [{}, { is: "task" }] as const) {
        const error = await caught(started({ ...start, ...is }));
        expect(error).toMatchObject({ name: "RuntimeEnvSetupError" });
        expect((error as Error).message).toContain(message);
      }
    }
  });

  test("all of that for all of its lives, also beyond the parent", async () => {
    const parent = Heir.options({
      runtimeEnv: { env: { FIRST: "parent" }, permissions: { allowFsRead: [folder] } },
    }).remote();
    for (const isolation of ["thread", "shared"] as const) {
      const child = await ray.get(parent.make.remote({ isolation, maxRestarts: 1 }));
      await ray.get(child.start.remote([], []));
      await ray.kill(child, { noRestart: false });
      if (isolation === "shared") await ray.kill(parent);
      const { variables, files } = await ray.get(child.start.remote([{ is: "task" }], paths()));
      expect(variables).toEqual(["parent", undefined]);
      expect(files).toEqual(["read", denied]);
    }
  });

  test("a shared thread with those that inherit alike, until the last of them has ended", async () => {
    const [one, two, other] = ["a", "a", "b"].map((FIRST) =>
      Heir.options({ runtimeEnv: { env: { FIRST } } }).remote(),
    );
    assert(one && two && other);
    const make = (by: typeof one): ray.ObjectRef<ray.ActorHandle<HeirClass>> =>
      by.make.remote({ isolation: "shared" });
    const children = await ray.get([make(one), make(two), make(other)]);
    const found = await ray.get(children.map((child) => child.start.remote([], [])));
    expect(found.map(({ variables: [first] }) => first)).toEqual(["a", "a", "b"]);
    const [first, second, third] = found.map(({ thread }) => thread);
    expect([first === second, first === third]).toEqual([true, false]);
    await Promise.all(children.map((child) => ray.kill(child)));
    const again = await ray.get((await ray.get(make(one))).start.remote([], []));
    expect(again.variables).toEqual(["a", undefined]);
    expect(again.thread).not.toBe(first);
  });

  test("flags of a whole process as a process, and not as a thread, which cannot have them", async () => {
    const execArgv = ["--max-old-space-size=64", "--no-deprecation"];
    const parent = Heir.options({ isolation: "process", runtimeEnv: { execArgv } }).remote();
    const flagsOf = async (isolation: "thread" | "process"): Promise<readonly string[]> =>
      (await ray.get(parent.start.remote([{ isolation }], []))).flags;
    expect(await flagsOf("thread")).toContain("--no-deprecation");
    expect(await flagsOf("process")).toEqual(expect.arrayContaining(execArgv));
  });
});
