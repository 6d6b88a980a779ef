/** The commands that speak to a running driver: they show what the driver sees itself, find the right one, and say clearly when there is none. */
import { hostname } from "node:os";
import { chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { parse } from "yaml";
import { isFull } from "../../../test/fixtures/suite.ts";
import { inProcess, rayling, shown, start } from "./command.ts";
import { driver, json, killed, ownDirectory, recordsIn, sharedDriver } from "./driver.ts";

let directory: string;
beforeEach(async () => {
  directory = await ownDirectory();
});

const kinds = {
  actors: "Actors",
  tasks: "Tasks",
  objects: "Objects",
  nodes: "Nodes",
  workers: "Workers",
  "placement-groups": "PlacementGroups",
};

/** What both see comes to rest: an owner hears a moment later who holds what is its, and that a task has ended. */
const settled = { timeout: 60_000, interval: 50 };

/** Where what it runs is no part of the case. */
const bare = { isolation: "shared" } as const;

interface Rows {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly total: number;
  readonly missing: readonly string[];
}

describe("what the commands show of a driver", () => {
  const shared = sharedDriver({ taskEvents: true });

  test("summary does, too", async () => {
    const session = shared();
    for (const what of ["actors", "tasks", "objects"] as const) {
      await vi.waitFor(async () => {
        expect(await json("summary", what)).toEqual(await session.ask("summarize", kinds[what]));
      }, settled);
    }
  });

  test("shows the rows that are asked for", async () => {
    const session = shared();
    const filters = [
      ["className", "=", "Idle"],
      ["state", "!=", "dead"],
    ];
    const some = (await session.ask("list", "Actors", { filters })) as Rows;
    expect(some.rows).toHaveLength(1);
    const flags = ["--filter", "class_name=Idle", "--filter", "state!=dead"];
    expect(await json("list", "actors", ...flags)).toEqual(some);
    const drivers = ["--filter", "workerType=driver", "--filter", `pid=${session.pid}`];
    expect(await json("list", "workers", ...drivers, "--filter", "isAlive=true")).toMatchObject({
      total: 1,
    });
    const limited = (await json("list", "actors", "--limit", "1")) as Rows;
    expect(limited).toMatchObject({ total: 3, rows: [{ className: "Grader" }] });
  });

  test("as tables: without colours and control characters, unless colours are asked for", async () => {
    const { stdout } = await inProcess("list", "actors");
    const [head = "", first = ""] = stdout.split("\n");
    expect(head).toMatch(/^actorId +className +state +name +/);
    expect(first).toMatch(/^actor-\w{16} +Grader +ALIVE +the \uFFFD\[31mgrader +job-/);
    expect(stdout).not.toContain("\u001b");
    expect((await inProcess("list", "actors", "--limit", "2")).stdout).toContain("2 of 3");
    expect((await inProcess("list", "actors", "--filter", "name=nobody")).stdout).toBe("none\n");
    vi.stubEnv("FORCE_COLOR", "1");
    expect((await inProcess("list", "actors")).stdout).toContain("\u001b[32mALIVE\u001b[39m");
    vi.stubEnv("NO_COLOR", "1");
    vi.stubEnv("FORCE_COLOR", undefined);
    expect((await inProcess("list", "actors")).stdout).not.toContain("\u001b");
  });

  test("status shows nodes with what is used, actors by state, and who waits and why", async () => {
    const session = shared();
    const { nodes, ...status } = (await json("status")) as {
      readonly nodes: readonly Readonly<Record<string, unknown>>[];
    };
    expect(nodes).toHaveLength(1);
    expect(nodes[0]).toMatchObject({
      hostname: hostname(),
      state: "ALIVE",
      isHeadNode: true,
      resources: { CPU: { used: 2.5, total: 4 }, license: { used: 0.1, total: 2 } },
    });
    expect(status).toMatchObject({
      driver: { pid: session.pid, script: expect.stringMatching(/fixtures\/driver\.ts$/) },
      actors: {
        ALIVE: 1,
        DEAD: 1,
        PENDING_CREATION: 1,
        RESTARTING: 0,
        DEPENDENCIES_UNREADY: 0,
      },
      placementGroups: { CREATED: 1 },
      pending: [
        {
          first: "actor Idle",
          count: 1,
          wants: [{ license: 5, CPU: 1 }],
          feasible: false,
          reason: "needs 5 license of 2",
        },
      ],
      pendingLines: 1,
    });
    const { stdout } = await inProcess("status");
    expect(stdout).toMatch(/^\S+ \(head\) +\S+ +ALIVE +2\.5\/4 /m);
    expect(stdout).toContain("actors: 1 PENDING_CREATION, 1 ALIVE, 1 DEAD");
    expect(stdout).toContain('1 x {"license":5,"CPU":1}: needs 5 license of 2, more than any');
  });

  test("only this user may speak to it: the directory has mode 0700, the files in it 0600", async () => {
    const { directory: own } = shared();
    expect((await stat(own)).mode & 0o777).toBe(0o700);
    const names = await readdir(own);
    expect(names).toHaveLength(2);
    for (const name of names) expect((await stat(join(own, name))).mode & 0o777).toBe(0o600);
  });

  test("a timeline is what the driver would write, as valid JSON", async () => {
    const session = shared();
    const path = join(directory, "trace.json");
    await vi.waitFor(async () => {
      const { code, stdout } = await inProcess("timeline", "--out", path);
      expect(code).toBe(0);
      const trace = JSON.parse(await readFile(path, "utf8")) as readonly unknown[];
      expect(stdout).toContain(`${trace.length} events in ${path}`);
      expect(trace).toEqual(await session.ask("timeline"));
      expect(trace).toContainEqual(expect.objectContaining({ name: "submit Grader.say" }));
      expect(JSON.parse((await inProcess("timeline", "--out", "-")).stdout)).toEqual(trace);
    }, settled);
  });

  test("a timeline keeps a file that is there", async () => {
    const path = join(directory, "notes.md");
    await writeFile(path, "my notes");
    const { code, stderr } = await inProcess("timeline", "--out", path);
    expect(code).toBe(0);
    const [, aside = ""] = /is now in (\S+)$/m.exec(stderr) ?? [];
    expect(await readFile(aside, "utf8")).toBe("my notes");
    expect(JSON.parse(await readFile(path, "utf8"))).toBeInstanceOf(Array);
  });

  test("a timeline needs a file that can be written", async () => {
    expect(await inProcess("timeline", "--out", join(directory, "no/trace.json"))).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^rayling: --out: ENOENT.*\n$/) as string,
    });
  });
});

describe("what they show of one whose actors are processes", () => {
  const shared = sharedDriver({ taskEvents: true, isolation: "process" });

  test("list shows what the driver itself sees, whatever it lists", async () => {
    const session = shared();
    for (const [what, name] of Object.entries(kinds)) {
      await vi.waitFor(async () => {
        const seen = (await session.ask("list", name, {})) as Rows;
        expect(seen.rows.length, what).toBeGreaterThan(0);
        expect(await json("list", what)).toEqual(seen);
      }, settled);
      await vi.waitFor(async () => {
        const { stdout: yaml } = await inProcess("list", what, "--detail");
        expect(parse(yaml)).toEqual(await session.ask("list", name, { detail: true }));
      }, settled);
    }
    // Nobody but the driver has opened a socket: neither hosts in threads nor in processes.
    expect(await recordsIn(session.directory)).toHaveLength(1);
  });

  test("memory shows who keeps how much, and objects by size", async () => {
    const { stores, objects, ...memory } = (await json("memory")) as {
      readonly stores: readonly { readonly bytesInMemory: number }[];
      readonly objects: readonly { readonly objectSize: number }[];
    };
    // What was put, and the pulled result, which may be collected.
    expect([300_000, 600_000]).toContain(stores[0]?.bytesInMemory);
    expect(stores).toHaveLength(3);
    expect(objects[0]?.objectSize).toBeGreaterThanOrEqual(300_000);
    expect(memory).toMatchObject({ totalObjects: objects.length, missing: [] });
    expect((await inProcess("memory")).stdout).toMatch(/PINNED_IN_MEMORY/);
  });
});

test("commands answer within their time, and name the host that does not", async () => {
  const session = await driver();
  const { rows } = (await json("list", "actors", "--filter", "className=Grader")) as Rows;
  await session.ask("holdGrader");
  const held = rows[0]?.["workerId"];
  const flags = ["--timeout", "1000", "--format", "json"];
  for (const list of [["tasks"], ["actors", "--detail"]]) {
    const { code, stdout, stderr } = await inProcess("list", ...list, ...flags);
    expect((JSON.parse(stdout) as Rows).missing).toContain(held);
    expect(stderr).toMatch(new RegExp(`is missing: .*${String(held)}`));
    expect(code).toBe(0);
  }
  // What only the driver knows is there at once.
  expect(await json("status")).toMatchObject({ actors: { ALIVE: 1 } });
});

test("other machines are shown, what runs there, and that one is gone", async () => {
  const offer = ["--name", "box", "--num-cpus", "4", "--resources", "license=2"];
  const token = ["--token-file", join(directory, "token")];
  const agent = start("node", "--listen", "127.0.0.1:0", ...token, ...offer);
  onTestFinished(() => void agent.child.kill("SIGKILL"));
  const [address = ""] = await shown(agent, /rayling:\/\/\S+(?=")/);
  const session = await driver({
    numCpus: 1,
    resources: {},
    nodes: [address],
    reconnectTimeoutMs: 500,
  });
  const nodes = await vi.waitFor(async () => {
    const shownNodes = (await json("list", "nodes")) as Rows;
    expect(shownNodes).toEqual(await session.ask("list", "Nodes", {}));
    return shownNodes;
  }, settled);
  const nodeId = nodes.rows.find(({ nodeName }) => nodeName === "box")?.["nodeId"];
  const there = ["--filter", `nodeId=${String(nodeId)}`];
  expect(await json("list", "actors", ...there)).toMatchObject({
    rows: [{ className: "Grader", state: "ALIVE" }],
  });
  expect(await json("status")).toMatchObject({
    nodes: [{ isHeadNode: true }, { nodeId, resources: { CPU: { used: 1.5, total: 4 } } }],
  });
  expect((await inProcess("logs", "--actor", "Grader")).stdout).toMatch(/hello\n$/);
  agent.child.kill("SIGKILL");
  await expect
    .poll(() => json("list", "nodes", ...there), { timeout: 60_000, interval: 100 })
    .toMatchObject({
      rows: [{ state: "DEAD", stateMessage: expect.stringContaining("node box is lost") }],
    });
  expect(await json("list", "workers", "--filter", "isAlive=true", ...there)).toMatchObject({
    total: 0,
  });
  const status = (await json("status")) as { readonly nodes: readonly unknown[] };
  expect(status.nodes[1]).toMatchObject({ nodeId, state: "DEAD", resources: {} });
});

describe("which driver", () => {
  test("none: one line and exit code 1", async () => {
    for (const command of [["status"], ["list", "actors"], ["logs", "--follow"], ["stop"]]) {
      expect(await inProcess(...command)).toMatchObject({
        code: 1,
        stdout: "",
        stderr: expect.stringMatching(/^rayling: no driver is running.*\n$/),
      });
    }
    vi.stubEnv("RAYLING_CONTROL_DIRECTORY", join(directory, "not-there"));
    expect(await inProcess("status")).toMatchObject({ code: 1, stdout: "" });
  });

  test("one that opens no socket is not found, and one that is chosen and not there is named", async () => {
    await driver({ ...bare, controlSocket: false });
    expect(await inProcess("status")).toMatchObject({ code: 1 });
    const { code, stderr } = await inProcess("status", "--pid", "4711");
    expect(stderr).toBe("rayling: no driver is known as pid 4711\n");
    expect(code).toBe(1);
  });

  test("several: they are listed, and one is chosen by pid, job id, socket or environment; one more removes what a killed one left, and nobody else's", async () => {
    const [first, second] = [await driver(bare), await driver(bare)];
    const { code, stdout, stderr } = await inProcess("status");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^${first.pid} +job-\\w+ .*fixtures/driver.ts$`, "m"));
    expect(stderr).toMatch(new RegExp(`^${second.pid} +job-`, "m"));
    expect(stderr).toContain("2 drivers are running: choose one with --pid or --address");
    for (const { pid } of [first, second]) {
      const found = await json("status", "--pid", String(pid));
      expect(found).toMatchObject({ driver: { pid } });
      const { jobId } = (found as { driver: { jobId: string } }).driver;
      const path = join(directory, `${jobId}.sock`);
      for (const address of [jobId, path]) {
        expect(await json("status", "--address", address)).toMatchObject({ driver: { pid } });
      }
      vi.stubEnv("RAYLING_ADDRESS", jobId);
      expect(await json("status")).toMatchObject({ driver: { pid } });
      vi.stubEnv("RAYLING_ADDRESS", undefined);
    }
    await killed(first);
    const third = await driver(bare);
    await expect.poll(() => recordsIn(directory), { timeout: 60_000 }).toHaveLength(2);
    for (const { pid } of [second, third]) {
      expect(await json("status", "--pid", String(pid))).toMatchObject({ driver: { pid } });
    }
  });

  test("one that was killed is not running any more, whoever has its number, and its files go", async () => {
    const session = await driver(bare);
    await killed(session);
    const [record = ""] = await recordsIn(directory);
    const told = JSON.parse(await readFile(record, "utf8")) as object;
    // This process lives, and is no driver.
    await writeFile(record, JSON.stringify({ ...told, pid: process.pid }));
    const { code, stderr } = await inProcess("status");
    expect(stderr).toMatch(
      new RegExp(`^rayling: the driver ${process.pid} \\(.*\\) is not running any more\n$`),
    );
    expect(code).toBe(1);
    expect(await readdir(directory)).toEqual([]);
    expect((await inProcess("status")).stderr).toContain("no driver is running");
  });

  test("one that does not answer is not taken for dead, and holds up nobody else", async () => {
    const session = await driver(bare);
    const other = await driver(bare);
    await session.ask("holdDriver");
    expect(await json("status", "--pid", String(other.pid))).toMatchObject({
      driver: { pid: other.pid },
    });
    const { stderr: list } = await inProcess("status");
    expect(list).toMatch(new RegExp(`^${session.pid} .* \\(does not answer\\)$`, "m"));
    await killed(other);
    const { code, stderr } = await inProcess("status");
    expect(stderr).toContain(`the driver ${session.pid} (`);
    expect(stderr).toContain("does not answer: its thread is busy");
    expect(code).toBe(1);
    expect(await inProcess("stop", "--force")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("was killed") as string,
    });
    expect(await session.ended).toMatchObject({ signal: "SIGKILL" });
    expect(await readdir(directory)).toEqual([]);
  });
});

test("a directory that others may enter is not used: the driver warns and goes on", async () => {
  await chmod(directory, 0o755);
  const session = await driver(bare, false);
  await session.ask("shutdown");
  session.child.stdin?.end();
  const { code, stderr } = await session.ended;
  expect(stderr.match(/control socket cannot be opened/g)).toHaveLength(1);
  expect(stderr).toContain(`${directory} is not a directory of this user alone: chmod 700`);
  expect(code).toBe(0);
  const status = await inProcess("status");
  expect(status.stderr).toContain("is not a directory of this user alone");
  expect(status.code).toBe(1);
});

describe("stop", () => {
  const isThere = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  test("ends the driver with all its hosts, and leaves nothing", async () => {
    const session = await driver({ isolation: "process" });
    const { rows } = (await json("list", "workers")) as Rows;
    const pids = rows.map(({ pid }) => pid as number);
    expect(new Set(pids).size).toBeGreaterThan(1);
    const { code, stdout } = await inProcess("stop");
    expect(stdout).toMatch(new RegExp(`^the driver ${session.pid} .* has ended\n$`));
    expect(code).toBe(0);
    await expect.poll(() => pids.filter(isThere)).toEqual([]);
    expect(await readdir(directory)).toEqual([]);
    // As after SIGTERM, and without a word of calls that were cut off.
    const ended = await session.ended;
    expect(ended.code).toBe(143);
    expect(ended.stderr).not.toMatch(/Error|shut down/);
  });

  test("leaves the end to a driver that handles SIGTERM", async () => {
    const session = await driver(bare);
    await session.ask("onTerminate", "exit");
    expect(await inProcess("stop")).toMatchObject({ code: 0 });
    expect(await session.ended).toMatchObject({ code: 7 });
  });

  test("tells of one that stays, and kills it with --force", async () => {
    const session = await driver(bare);
    await session.ask("onTerminate", "stay");
    const { code, stderr } = await inProcess("stop", "--grace-period", "500");
    const { pid } = session.child;
    expect(stderr).toContain(
      `has not ended within 500 ms: its session has ended, and its process goes on; kill -KILL ${pid} ends it`,
    );
    expect(code).toBe(1);
    await killed(session);
    const other = await driver(bare);
    await other.ask("onTerminate", "stay");
    const forced = await inProcess("stop", "--grace-period", "500", "--force");
    expect(forced).toMatchObject({ code: 0, stdout: expect.stringContaining("was killed") });
    expect(await other.ended).toMatchObject({ signal: "SIGKILL" });
  });

  test.runIf(isFull)("says so of one that may not be killed", async () => {
    const session = await driver(bare);
    session.child.kill("SIGSTOP");
    // As where its number is that of a process of another user.
    const refuse = `process.kill = () => { throw Object.assign(new Error("kill EPERM"), { code: "EPERM" }); };`;
    vi.stubEnv(
      "NODE_OPTIONS",
      `${process.env["NODE_OPTIONS"] ?? ""} --import data:text/javascript,${encodeURIComponent(refuse)}`,
    );
    const { code, stderr } = await rayling("stop", "--grace-period", "500", "--force");
    vi.unstubAllEnvs();
    expect(stderr.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^rayling: the driver \d+ .*, and cannot be killed/),
    ]);
    expect(code).toBe(1);
    session.child.kill("SIGKILL");
    await session.ended;
  });
});

test("a timeline needs a driver that notes something", async () => {
  await driver(bare);
  const { code, stderr } = await inProcess("timeline", "--out", join(directory, "trace.json"));
  expect(stderr).toContain("start it with init({ taskEvents: true })");
  expect(code).toBe(1);
});

describe("bad input is one line and exit code 2", () => {
  test.each([
    [["list"], /missing required argument 'what'/],
    [["list", "jobs"], /Allowed choices are actors, tasks,/],
    [["list", "actors", "--filter", "state"], /--filter.*key=value or key!=value/],
    [["list", "actors", "--filter", "colour=red"], /actors cannot be filtered by "colour"/],
    [["list", "actors", "--limit", "0"], /--limit.*at least 1/],
    [["list", "actors", "--format", "xml"], /--format.*Allowed choices are table, json, yaml/],
    [["summary", "nodes"], /Allowed choices are actors, tasks, objects/],
    [["status", "--pid", "me"], /--pid/],
    [["status", "now"], /too many arguments/],
  ])("%j", async (args, message) => {
    const { code, stdout, stderr } = await inProcess(...args);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(message);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });
});
