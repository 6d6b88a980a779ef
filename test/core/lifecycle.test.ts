import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Counter, Meeting } from "../fixtures/actors.ts";
import { Streaming } from "../fixtures/calls.ts";

const run = promisify(execFile);

/** Runs a driver file in a process of its own; it must end by itself. */
async function runDriver(
  name: string,
  environment: Record<string, string> = {},
): Promise<{ stdout: string; stderr: string }> {
  const path = fileURLToPath(new URL(`../fixtures/drivers/${name}`, import.meta.url));
  return run(process.execPath, [path], { env: { ...process.env, ...environment } });
}

describe("a single file with class and driver", () => {
  test("runs without init(), and its driver code runs once", async () => {
    expect((await runDriver("without-init.ts")).stdout).toBe("driver [ 1, 3 ]\n");
  });

  test("may create actors, put and get at the top level", async () => {
    expect((await runDriver("top-level-actors.ts")).stdout).toBe(
      "driver [ 'stored', 'stored', 'stored', 'stored' ]\n",
    );
  });

  test("waits for the end of an actor in a process that it kills, and for nothing else", async () => {
    expect((await runDriver("kill-process-actor.ts")).stdout).toBe("driver killed\n");
  });

  test("whose class stands below init() says so and where to move it", async () => {
    const { stdout } = await runDriver("class-after-init.ts");
    expect(stdout).toMatch(/^driver ActorDiedError .*Late cannot be found by a worker/);
    expect(stdout).toContain("Move the remote() call above it, or to a module of its own");
    expect(stdout.match(/^driver /gm)).toHaveLength(1);
  });

  test("may be an async function that starts late, catches everything and exits", async () => {
    expect((await runDriver("main-function.ts")).stdout).toBe("driver 1\n");
  });

  test("whose first call stands in a try hears in a worker what to put above it", async () => {
    const { stdout } = await runDriver("first-call-in-try.ts");
    expect(stdout).toMatch(/^driver 2$/m);
    expect(stdout).toMatch(
      /caught DriverCodeStopped: .*Put "await ray.init\(\)" at the top level, .* in CommonJS as the first line/,
    );
  });

  test("must be a file: what node -e is given says so at its remote()", async () => {
    const program = `import * as ray from "@rayling/core";
      try { ray.remote(() => 1) } catch (error) { console.log(error.code, error.message) }`;
    const flags = ["--input-type=module", "-e", program];
    const { stdout } = await run(process.execPath, flags, { cwd: import.meta.dirname });
    expect(stdout).toMatch(/^\S+ anonymous .*: put what stands in node -e, .* into a file/);
  });

  test("lives until what it asks of its session is answered", async () => {
    expect((await runDriver("asks.ts")).stdout).toBe("driver knows all\n");
  });

  test("ends without shutdown(), busy actors and all", async () => {
    expect((await runDriver("no-shutdown.ts")).stdout).toBe("driver hello\n");
  });

  test("gets a clear error before init() where auto-init is off", async () => {
    const failed = await runDriver("without-init.ts", { RAYLING_AUTO_INIT: "0" }).catch(
      (error: unknown) => error,
    );
    expect((failed as { stderr: string }).stderr).toContain(
      "the runtime has not been started: call init first",
    );
  });
});

describe("init and shutdown", () => {
  test("start and end; a second init is an error unless it may be ignored; a second shutdown is none", async () => {
    expect(ray.isInitialized()).toBe(false);
    const { namespace } = await ray.init({ namespace: "mine", prewarm: 0 });
    expect(namespace).toBe("mine");
    expect(ray.isInitialized()).toBe(true);
    await expect(ray.init()).rejects.toThrow(ray.RaySystemError);
    expect(await ray.init({ ignoreReinitError: true })).toEqual({ namespace: "mine" });
    await Promise.all([ray.shutdown(), ray.shutdown()]);
    await ray.shutdown();
    expect(ray.isInitialized()).toBe(false);
  });

  test("a thread that stands ready is the one that the first actor gets, and another takes its place", async () => {
    await ray.init({ numCpus: 2, prewarm: 1, isolation: "thread" });
    const threads = async (): Promise<string[]> => {
      const rows = await ray.state.listWorkers({ filters: [["workerType", "=", "WORKER"]] });
      return rows.map(({ workerId }) => workerId);
    };
    const [ready, ...more] = await threads();
    expect(more).toEqual([]);
    const counter = Counter.remote();
    await ray.get(counter.increment.remote());
    const [actor] = await ray.state.listActors();
    expect(actor?.workerId).toBe(ready);
    while ((await threads()).length < 2);
    await ray.shutdown();
  });

  test("threads that stand ready by themselves are replaced when actors come one after another, and not those of the first", async () => {
    await ray.init({ numCpus: 32, isolation: "thread" });
    const count = async (): Promise<number> =>
      (await ray.state.listWorkers({ filters: [["workerType", "=", "WORKER"]] })).length;
    const ready = await count();
    expect(ready).toBeGreaterThan(0);
    const first = Array.from({ length: ready + 1 }, () => Counter.remote());
    await ray.get(first.map((counter) => counter.increment.remote()));
    expect(await count()).toBe(first.length);
    const later: (typeof first)[number][] = [];
    while (later.length < ready) {
      expect(await count()).toBe(first.length + later.length);
      const counter = Counter.remote();
      await ray.get(counter.increment.remote());
      later.push(counter);
    }
    while ((await count()) < first.length + 2 * ready);
    await ray.shutdown();
  });

  test("await using ends what it names: actors, streams, queues, pools, groups, nodes and the session", async () => {
    {
      await using session = await ray.init({ numCpus: 2, prewarm: 0, namespace: "used" });
      expect(session).toEqual({ namespace: "used" });
      const names = async (): Promise<string[]> => {
        const rows = await ray.state.listActors({ filters: [["state", "=", "ALIVE"]] });
        return rows.map(({ className }) => className);
      };
      let nodes: readonly { readonly alive: boolean }[];
      {
        await using counter = Counter.remote();
        await using queue = new ray.Queue<number>();
        const members = [Counter.remote(), Counter.remote()];
        await using pool = new ray.ActorPool(members);
        await using cluster = new ray.Cluster();
        await cluster.addNode({ numCpus: 1 });
        await using group = ray.placementGroup([{ CPU: 0.5 }]);
        await ray.get(group.ready());
        await using stream = Streaming.remote().until.remote();
        await stream.next();
        await queue.put(1);
        pool.submit((actor, by: number) => actor.increment.remote(by), 2);
        expect(await pool.getNext()).toBe(2);
        expect(await ray.get(counter.increment.remote())).toBe(1);
        nodes = await ray.nodes();
        expect(nodes.filter(({ alive }) => alive)).toHaveLength(2);
      }
      await expect.poll(names).toEqual([]);
      expect((await ray.nodes()).filter(({ alive }) => alive)).toHaveLength(1);
      expect(Object.values(await ray.placementGroupTable())[0]?.state).toBe("REMOVED");
    }
    expect(ray.isInitialized()).toBe(false);
  });

  test("every shutdown waits until no thread is left", async () => {
    await ray.init({ numCpus: 1, prewarm: 0 });
    const lost = expect(ray.get(Meeting.remote().wait.remote())).rejects.toBeInstanceOf(
      ray.SessionEndedError,
    );
    const ends: string[] = [];
    const first = ray.shutdown().then(() => ends.push("first"));
    const second = ray.shutdown().then(() => ends.push("second"));
    await second;
    expect(ends).toEqual(["first", "second"]);
    await Promise.all([first, lost]);
  });

  test("refuse unknown and ill-typed options", async () => {
    await expect(ray.init({ cpus: 3 } as never)).rejects.toThrow('init has no option "cpus"');
    await expect(ray.init({ namespace: "" })).rejects.toThrow("option namespace");
    await expect(ray.init({ numCpus: -1 })).rejects.toThrow("option numCpus");
    await expect(ray.init({ prewarm: 1e9 })).rejects.toThrow("prewarm must be at most 1024");
    await expect(ray.init({ labels: { "a\nb": "c" } })).rejects.toThrow("option labels");
    await expect(ray.init({ labels: { a: "b\u009bc" } })).rejects.toThrow("option labels");
    await expect(ray.init({ metricsToken: "x".repeat(32) })).rejects.toMatchObject({
      option: "metricsToken",
      message: expect.not.stringContaining("xxx") as string,
    });
    await expect(ray.init([1, "two"] as never)).rejects.toThrow("not [ 1, 'two' ]");
    await expect(ray.init({ resources: { gpu: -1 } })).rejects.toThrow("{ gpu: -1 }");
    // What may hold secrets is shown by its kind.
    const nodes = [{ token: "secret" }] as never;
    await expect(ray.init({ nodes })).rejects.toThrow("not an instance of Array");
    expect(ray.isInitialized()).toBe(false);
  });

  test("shutdown rejects what is pending, and old handles then say that their session has ended", async () => {
    const meeting = Meeting.remote();
    const pending = ray.get(meeting.wait.remote());
    const settled = expect(pending).rejects.toMatchObject({ code: "SESSION_ENDED" });
    await ray.shutdown();
    await settled;
    expect(() => meeting.open.remote()).toThrow("belongs to a session that has ended");
  });

  test("any use starts the runtime again", async () => {
    expect(await ray.get(Counter.remote(1).increment.remote())).toBe(2);
    await ray.shutdown();
  });

  test("shutdown in the same turn as the first call leaves nothing behind", async () => {
    const refs = Array.from({ length: 3 }, () => Counter.remote().read.remote());
    const all = Promise.allSettled(refs.map((ref) => ray.get(ref)));
    await ray.shutdown();
    for (const result of await all) expect(result.status).toBe("rejected");
  });
});
