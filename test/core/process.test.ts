import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import * as ray from "@rayling/core";
import { drainsAtExit } from "../fixtures/isolation.ts";
import { sized } from "../fixtures/suite.ts";
import { keep } from "../fixtures/keep.ts";
import { exits, pidOf, Resident, variableOf } from "../fixtures/processes.ts";

const ownProcess = { isolation: "process" } as const;
const InProcess = Resident.options(ownProcess);

const caught = (ref: ray.ObjectRef): Promise<unknown> =>
  ray.get(ref).then(
    (value) => expect.fail(`expected a rejection, got ${String(value)}`),
    (error: unknown) => error,
  );

/** A socket that processes tie themselves to: their end closes it. */
class Ties {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];
  readonly path: string;
  constructor(path: string) {
    this.path = path;
    this.#server = createServer((socket) => {
      this.#sockets.push(socket);
      socket.on("error", () => undefined);
    });
  }
  async listen(): Promise<this> {
    this.#server.listen(this.path);
    await once(this.#server, "listening");
    return this;
  }
  /** The one that came so many before it; waits for it to come. */
  async #socket(index: number): Promise<Socket> {
    while (this.#sockets.length <= index) await once(this.#server, "connection");
    return this.#sockets[index] as Socket;
  }
  /** Resolves when all that tied themselves are gone. */
  async gone(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const socket = await this.#socket(index);
      socket.resume();
      if (!socket.closed) await once(socket, "close");
    }
  }
  async said(index: number): Promise<void> {
    await once(await this.#socket(index), "data");
  }
  close(): void {
    this.#server.close();
  }
}

let folder: string;
let ties: Ties;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tied-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let number = 0;
async function newTies(): Promise<Ties> {
  ties = await new Ties(join(folder, `${number++}`)).listen();
  return ties;
}
afterEach(() => ties?.close());

describe("an actor in a process", () => {
  beforeAll(() => ray.init({ numCpus: 4, prewarm: 0, isolation: "thread" }));
  afterAll(() => ray.shutdown());

  test("has a process of its own, and so has every other; a task too", async () => {
    const pids = await ray.get([
      InProcess.remote().pid.remote(),
      InProcess.remote().pid.remote(),
      pidOf.options(ownProcess).remote(),
    ]);
    expect(new Set([...pids, process.pid]).size).toBe(4);
    expect(await ray.get(Resident.remote().pid.remote())).toBe(process.pid);
    expect(await ray.get(pidOf.remote())).toBe(process.pid);
  });

  test("gets its environment, and nothing of the runtime's is in it", async () => {
    const actor = InProcess.options({ runtimeEnv: { env: { RAYLING_TEST: "inside" } } }).remote();
    expect(await ray.get(actor.environment.remote("RAYLING_TEST"))).toBe("inside");
    const names = await ray.get(actor.variables.remote());
    expect(names.filter((name) => name.startsWith("RAYLING_") && !(name in process.env))).toEqual([
      "RAYLING_TEST",
    ]);
    expect(await ray.get(actor.environment.remote("PATH"))).toBe(process.env["PATH"]);
    const task = variableOf.options({ ...ownProcess, runtimeEnv: { env: { RAYLING_TEST: "t" } } });
    expect(await ray.get(task.remote("RAYLING_TEST"))).toBe("t");
    expect(await ray.get(variableOf.options(ownProcess).remote("RAYLING_TEST"))).toBeUndefined();
  });

  test("reads large buffers in place, and they come back as they were", async () => {
    const actor = keep(InProcess.remote());
    const large = new Uint8Array(3_000_000).map((_, index) => index % 251);
    expect(await ray.get(actor.isShared.remote(large))).toBe(true);
    const back = (await ray.get(actor.echo.remote({ large }))) as { large: Uint8Array };
    expect(Buffer.from(back.large).equals(large)).toBe(true);
    const made = await ray.get(actor.keep.remote(large));
    expect(Buffer.from((await ray.get(made.ref)) as Uint8Array).equals(large)).toBe(true);
  });

  test("calls actors in other processes and in threads directly, and they call it", async () => {
    const [left, right] = [InProcess.remote(), InProcess.remote()];
    const thread = Resident.remote();
    const [leftPid, rightPid] = await ray.get([left.pid.remote(), right.pid.remote()]);
    expect(await ray.get(left.call.remote(right))).toBe(rightPid);
    expect(await ray.get(right.call.remote(left))).toBe(leftPid);
    expect(await ray.get(thread.call.remote(left))).toBe(leftPid);
    expect(await ray.get(right.call.remote(thread))).toBe(process.pid);
    const many = Array.from({ length: 50 }, (_, index) =>
      [left, right, thread][index % 3]?.call.remote(
        [left, right, thread][(index + 1) % 3] as never,
      ),
    ) as ray.ObjectRef<number>[];
    expect(new Set(await ray.get(many))).toEqual(new Set([leftPid, rightPid, process.pid]));
  });

  test("reads objects of threads, of other processes and of the driver", async () => {
    const [left, right] = [keep(InProcess.remote()), keep(InProcess.remote())];
    const thread = keep(Resident.remote());
    const large = new Float64Array(50_000).fill(0.5);
    const refs = [
      await ray.get(right.keep.remote("of a process")),
      await ray.get(thread.keep.remote("of a thread")),
      { ref: ray.put(large) },
    ];
    const values = await ray.get(refs.map((given) => left.read.remote(given)));
    expect(values).toEqual(["of a process", "of a thread", large]);
  });

  test.runIf(drainsAtExit)(
    "answers what it finished before it ends, more than a socket holds",
    async () => {
      const actor = InProcess.remote();
      await ray.get(actor.pid.remote());
      const text = "x".repeat(50_000);
      const before = Array.from({ length: 60 }, () => actor.echo.remote(text));
      const large = actor.echo.remote(new Uint8Array(20_000_000).fill(7));
      const exit = actor.exit.remote(0);
      const after = actor.pid.remote();
      for (const ref of before) expect((await ray.get(ref)) === text).toBe(true);
      expect(((await ray.get(large)) as Uint8Array)[19_999_999]).toBe(7);
      expect(await caught(exit)).toBeInstanceOf(ray.ActorDiedError);
      expect(await caught(after)).toBeInstanceOf(ray.ActorDiedError);
    },
  );

  test("is killed in an endless loop, and what it started is gone with it", async () => {
    const { path } = await newTies();
    const actor = InProcess.remote();
    await ray.get(actor.leaveBehind.remote(path));
    await ray.get(actor.tie.remote(path));
    const spinning = actor.spin.remote();
    await ties.said(1);
    await ray.kill(actor);
    expect(await caught(spinning)).toMatchObject({ deathCause: { kind: "killed" } });
    await ties.gone(2);
  });

  test("ends, with its cause, where the system lets nobody end its group", async () => {
    const { pid } = process;
    const kill = vi.spyOn(process, "kill").mockImplementation((target) => {
      // As macOS does for a group of processes that have ended.
      expect(Math.abs(target)).not.toBe(pid);
      throw Object.assign(new Error("kill EPERM"), { code: "EPERM" });
    });
    try {
      const error = (await caught(InProcess.remote().exit.remote(3))) as ray.ActorDiedError;
      expect(error.deathCause).toMatchObject({ kind: "exited", exitCode: 3 });
      const actor = InProcess.remote();
      const [never] = [actor.never.remote(), await ray.get(actor.pid.remote())];
      await ray.kill(actor);
      expect(await caught(never)).toMatchObject({ deathCause: { kind: "killed" } });
    } finally {
      kill.mockRestore();
    }
  });

  test("is started again in a new process", async () => {
    const actor = InProcess.options({ maxRestarts: 1, maxTaskRetries: 1 }).remote();
    const first = await ray.get(actor.pid.remote());
    await expect(ray.get(actor.end.remote("SIGKILL"))).rejects.toThrow(ray.RayError);
    const fresh = InProcess.options({ maxRestarts: 1 }).remote();
    const pid = await ray.get(fresh.pid.remote());
    expect(await caught(fresh.exit.remote(1))).toBeInstanceOf(ray.ActorUnavailableError);
    expect(await ray.get(fresh.pid.remote())).not.toBe(pid);
    expect(first).not.toBe(pid);
  });

  test("is started again as well if it lives and nobody can speak to it any more", async () => {
    const actor = InProcess.options({ maxRestarts: 1 }).remote();
    const pid = await ray.get(actor.pid.remote());
    const error = await caught(actor.closeSockets.remote());
    expect(error).toBeInstanceOf(ray.ActorUnavailableError);
    expect(await ray.get(actor.pid.remote())).not.toBe(pid);
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });
});

/** The gate does with one: the system names all signals in the same way. */
const signals = sized<readonly NodeJS.Signals[]>({
  gate: ["SIGSEGV"],
  full: ["SIGKILL", "SIGTERM", "SIGSEGV"],
});

describe("the death of a process has a cause", () => {
  beforeAll(() => ray.init({ numCpus: 4, prewarm: 0 }));
  afterAll(() => ray.shutdown());

  test("its exit code and the last lines on stderr", async () => {
    const actor = InProcess.remote();
    const lines = Array.from({ length: 30 }, (_, index) => `line ${index}`);
    actor.say.remote("stderr", ...lines);
    const error = (await caught(actor.exit.remote(7))) as ray.ActorDiedError;
    expect(error.deathCause).toMatchObject({ kind: "exited", exitCode: 7 });
    expect(error.deathCause.stderr).toEqual(lines.slice(10));
    expect(error.message).toContain("exited with code 7; its last lines on stderr:\nline 10\n");
  });

  test("at most 4 KB of them", async () => {
    const actor = InProcess.remote();
    actor.say.remote("stderr", "a".repeat(3000), "b".repeat(3000), "c".repeat(500));
    const error = (await caught(actor.exit.remote(1))) as ray.ActorDiedError;
    expect(error.deathCause.stderr?.map((line) => line[0])).toEqual(["b", "c"]);
  });

  test.each(signals)("the signal %s", async (signal) => {
    const actor = InProcess.remote();
    actor.end.remote(signal);
    const error = (await caught(actor.never.remote())) as ray.ActorDiedError;
    expect(error.deathCause).toMatchObject({ kind: "signal", signal });
    expect(error.message).toContain(`ended by ${signal}`);
  });

  test.each(["crash", "reject"] as const)("an error that nobody caught (%s)", async (how) => {
    const actor = InProcess.remote();
    actor[how].remote("nobody");
    const error = (await caught(actor.never.remote())) as ray.ActorDiedError;
    expect(error.deathCause.kind).toBe("uncaught-exception");
    expect(error.deathCause.error).toBeInstanceOf(RangeError);
    expect(error.message).toContain("RangeError: nobody");
  });

  test("of a task, too", async () => {
    const error = await caught(exits.options({ ...ownProcess, maxRetries: 0 }).remote(5));
    expect(error).toBeInstanceOf(ray.WorkerCrashedError);
    expect(error).toMatchObject({ deathCause: { kind: "exited", exitCode: 5 } });
  });
});

test("a process that the system does not start costs its task or actor, by its own error, and the session ends", async () => {
  const file = join(folder, "no-folder");
  await writeFile(file, "");
  vi.stubEnv("TMPDIR", file);
  onTestFinished(() => void vi.unstubAllEnvs());
  await ray.init({ numCpus: 1, prewarm: 0, controlSocket: false });
  const notStarted = { kind: "unreachable", message: expect.stringContaining("ENOTDIR") };
  const task = await caught(pidOf.options(ownProcess).remote());
  expect(task).toBeInstanceOf(ray.WorkerCrashedError);
  expect(task).toMatchObject({ deathCause: notStarted, cause: { code: "ENOTDIR" } });
  expect(await caught(InProcess.remote().pid.remote())).toMatchObject({
    code: "ACTOR_DIED",
    deathCause: notStarted,
  });
  await ray.shutdown();
});

describe("processes never outlive their driver", () => {
  const path = fileURLToPath(new URL("../fixtures/drivers/with-processes.ts", import.meta.url));
  const start = async (how: string): Promise<{ driver: ChildProcess; temporary: string }> => {
    await newTies();
    const temporary = await mkdtemp(join(folder, "tmp-"));
    const driver = spawn(process.execPath, [path, ties.path, how], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, TMPDIR: temporary, NODE_COMPILE_CACHE: join(folder, "compiled") },
    });
    return { driver, temporary };
  };
  const output = async (driver: ChildProcess): Promise<string> => {
    let text = "";
    driver.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await once(driver, "close");
    return text;
  };

  // A driver that returns ends its processes as one that exits does: at the exit of its process.
  const ends: readonly [string, number][] = [
    ["shutdown", 0],
    ["exit", 3],
  ];
  test.each(sized({ gate: ends, full: [...ends, ["return", 0]] }))(
    "that ends by %s",
    async (how, code) => {
      const { driver, temporary } = await start(how);
      const text = await output(driver);
      expect(driver.exitCode).toBe(code);
      await ties.gone(2);
      if (how !== "shutdown") return;
      // Only shutdown waits for the last words of its processes, and for its folder to be gone.
      expect(text).toMatch(/said inside\n.*and again\n/);
      expect(await readdir(temporary)).toEqual([]);
    },
  );

  test("that is killed", async () => {
    const { driver } = await start("hang");
    let text = "";
    for await (const chunk of driver.stdout ?? []) {
      text += String(chunk);
      if (text.includes("driver hang")) break;
    }
    driver.kill("SIGKILL");
    await ties.gone(2);
  });
});
