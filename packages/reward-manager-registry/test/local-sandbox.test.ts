/** Programs run for real: what they may do, what they may not, and that nothing of them is left. */

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmod,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LocalSandbox } from "@rayling/reward-manager-registry";
import type {
  Program,
  ProgramEnd,
  ProgramLanguage,
  SandboxIsolation,
} from "@rayling/reward-manager-registry";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { sized } from "../../../test/fixtures/suite.ts";
import { removeWritten } from "../src/sandbox/confined-child.ts";
import type { Isolation } from "../src/sandbox/isolation/isolation.ts";
import { plainProcess } from "../src/sandbox/isolation/without-namespaces.ts";
import { runProgram } from "../src/sandbox/program-run.ts";
import { Runtimes } from "../src/sandbox/runtimes.ts";
import { isolationsHere, sandboxOf } from "./fixtures/isolations-here.ts";

vi.setConfig({ testTimeout: 120_000 });

const best = new LocalSandbox({ memoryLimitMb: 128, maxOutputBytes: 100_000 });

async function run(
  language: ProgramLanguage,
  code: string,
  { isolation, ...more }: Partial<Program> & { readonly isolation?: SandboxIsolation } = {},
): Promise<ProgramEnd> {
  const sandbox = isolation === undefined ? best : sandboxOf(isolation);
  return sandbox.run({ language, code, ...more });
}

const python = (code: string, more?: Partial<Program>) => run("python", code, more);
const javascript = (code: string, more?: Partial<Program>) => run("javascript", code, more);

describe("a program", () => {
  test.each([
    ["python", "print(sum(map(int, input().split())))"],
    ["python", "print(sum(map(int, open('/dev/stdin').read().split())))"],
    [
      "javascript",
      "console.log(require('fs').readFileSync('/dev/stdin', 'utf8').split(' ').map(Number).reduce((a, b) => a + b))",
    ],
    [
      "javascript",
      "import { readFileSync } from 'node:fs';\nconsole.log(readFileSync(0, 'utf8').split(' ').map(Number).reduce((a, b) => a + b))",
    ],
  ] as const)(
    "in %s reads standard input and writes standard output: %s",
    async (language, code) => {
      expect(await run(language, code, { stdin: "1 2 39" })).toMatchObject({
        status: "finished",
        exitCode: 0,
        stdout: "42\n",
        stderr: "",
        value: undefined,
      });
    },
  );

  test("has the names that solutions use without importing them, and is __main__", async () => {
    const code =
      "def f(a: List[int]): return Counter(a)\nif __name__ == '__main__': print(f([1, 1])[1], sqrt(4), heapq)";
    expect((await python(code)).stdout).toMatch(/^2 2.0 <module 'heapq'/);
  });

  test.each([
    ["python", "def twice(a, b):\n  return [a * 2, b]", "twice"],
    ["python", "class Solution:\n  def twice(self, a, b):\n    return (a * 2, b)", "twice"],
    ["javascript", "const twice = (a, b) => [a * 2, b]", "twice"],
    ["javascript", "export class Solution { async twice(a, b) { return [a * 2, b]; } }", "twice"],
  ] as const)("in %s may be a function: %s", async (language, code, functionName) => {
    const end = await run(language, code, { functionName, stdin: '21\n{"a": [null]}\n' });
    expect(end.status).toBe("finished");
    expect(JSON.parse(end.value ?? "")).toEqual([42, { a: [null] }]);
  });

  test("gives whole numbers of any size, and what is no JSON as text", async () => {
    const code = "def f(n): return [n + 1, {1: {2}}]";
    const { value } = await python(code, { functionName: "f", stdin: "12345678901234567890123" });
    expect(value).toBe('[12345678901234567890124, {"1": "{2}"}]');
  });

  test("gives a BigInt as the whole number that it is", async () => {
    const code =
      "BigInt.prototype.toJSON = () => 'mine';\nfunction f(n) { return [2n ** 70n, { n: -1n }]; }";
    const { value } = await javascript(code, { functionName: "f", stdin: "1" });
    expect(value).toBe('[1180591620717411303424,{"n":-1}]');
  });

  test("that ends by SystemExit is told apart from one that fails", async () => {
    const ends = ["import sys; print(1); sys.exit('done')", "print(1); exit(1)", "print(1); 1 / 0"];
    const seen = await Promise.all(ends.map((code) => python(code)));
    expect(seen.map((end) => [end.stdout, end.exitCode, end.isExit])).toEqual([
      ["1\n", 1, true],
      ["1\n", 1, true],
      ["1\n", 1, false],
    ]);
  });

  test("that does not compile is told apart from one that fails", async () => {
    expect(await python("def f(:")).toMatchObject({ status: "compile-error", exitCode: 1 });
    const failed = await python("raise ValueError('mine')");
    expect(failed).toMatchObject({ status: "finished", exitCode: 1 });
    expect(failed.stderr).toContain("ValueError: mine");
    expect(await javascript("const x = ;")).toMatchObject({ status: "finished", exitCode: 1 });
    expect(await python("import sys; sys.exit(3)")).toMatchObject({ exitCode: 3 });
  });

  test("that crashes says by which signal", async () => {
    const end = { status: "finished", exitCode: null, signal: "SIGABRT" };
    expect(await python("import os; os.abort()")).toMatchObject(end);
    expect(await javascript("process.abort()")).toMatchObject(end);
  });

  test("has nothing of our environment", async () => {
    vi.stubEnv("SERVICE_KEY", "secret");
    const { stdout } = await javascript("console.log(JSON.stringify(process.env))");
    expect(stdout).not.toContain("secret");
    vi.unstubAllEnvs();
  });
});

const here = await isolationsHere();

describe.each(here)("%s", (isolation) => {
  const own = { isolation };

  test("it says which isolation it has", async () => {
    const sandbox = sandboxOf(isolation);
    expect(await sandbox.isolation()).toBe(isolation);
    expect(await sandbox.inspect()).toMatchObject({ isolation, missing: [] });
  });

  // At once: nothing but waiting.
  test.concurrent.each([
    // By the limit of the processor, a second; the others by that of the clock.
    ["python", "while True: pass", 1000],
    ["python", "import time\ntime.sleep(1000)", 200],
    // A Node that has not begun by then has no deadline to end at.
    ["javascript", "for (;;);", 1500],
    ["javascript", "setTimeout(() => undefined, 1e9)", 1500],
  ] as const)("%s ends at its deadline: %s", async (language, code, timeoutMs) => {
    const sandbox = new LocalSandbox({ isolation: [isolation], timeoutMs });
    const end = await sandbox.run({ language, code });
    expect(end).toMatchObject({ status: "timeout", exitCode: null, signal: "SIGKILL" });
  });

  test.each([
    ["python", "x = bytearray(400 << 20)", "MemoryError"],
    ["javascript", "const k = []; for (;;) k.push(Array(1000).fill(1.5))", "heap out of memory"],
    ["javascript", "const k = []; for (;;) k.push(Buffer.alloc(1 << 20, 1))", ""],
    [
      "javascript",
      "const k = []; for (;;) k.push(new Uint8Array(new SharedArrayBuffer(1 << 20)).fill(1))",
      "",
    ],
    ["python", "import mmap\nx = mmap.mmap(-1, 1 << 30)\nx[:] = bytes(1 << 30)", ""],
  ] as const)("%s may take so much memory: %s", async (language, code, said) => {
    const { status, exitCode, stderr } = await run(language, code, own);
    expect([status, exitCode === 0]).toEqual(["finished", false]);
    expect(stderr).toContain(said);
  });

  test("it may write so much", async () => {
    const end = await run("python", "while True: print('x' * 100)", own);
    expect(end.status).toBe("output-limit");
    expect(end.stdout.length).toBe(100_000);
    const file = await run("python", "open('big', 'wb').write(b'x' * (64 << 20))", own);
    expect(file.stderr).toContain("File too large");
  });

  // Of another process than ours: without the denial it would be gone.
  test.skipIf(process.platform !== "linux")(
    "Python is denied signals by file descriptors",
    async () => {
      const sleeper = spawn("sleep", ["1000"]);
      onTestFinished(() => void sleeper.kill());
      const code = `import os, signal; signal.pidfd_send_signal(os.pidfd_open(${sleeper.pid}), 9)`;
      const { exitCode, stderr } = await run("python", code, own);
      expect(exitCode).toBe(1);
      // Of a process of somebody else the kernel says nothing, either.
      expect(stderr).toMatch(
        /denies signal|No such process|AttributeError|Operation not permitted/,
      );
      expect(sleeper.exitCode ?? sleeper.signalCode).toBeNull();
    },
  );

  test("what it leaves in its folder goes with it", async () => {
    const temporary = await mkdtemp(join(tmpdir(), "runs of 'programs' "));
    vi.stubEnv("TMPDIR", temporary);
    const code = `
import os
for name in ("a\\nb", "*", "--", "-rf", "\\udcff", "'", '"', "x" * 255):
  open(name, "w").close()
os.symlink("*", "link")
os.mkdir("shut", 0)
os.mkdir("half", 0o500)
for _ in range(15):
  os.mkdir("deep" * 50)
  os.chdir("deep" * 50)
print("done")`;
    const end = await sandboxOf(isolation).run({ language: "python", code });
    vi.unstubAllEnvs();
    expect(end).toMatchObject({ stdout: "done\n", stderr: "" });
    expect(await readdir(temporary)).toEqual([]);
    await rm(temporary, { recursive: true });
  });
});

/** The languages deny it in the same way behind all walls: the gate looks behind the weakest. */
describe.each(sized({ gate: here.slice(-1), full: here }))("in %s", (isolation = "process") => {
  const own = { isolation };

  test("Python is denied files outside of its folder, the network, processes, foreign code", async () => {
    const denied = {
      "open('/etc/passwd').read()": "opening",
      "open('../escaped', 'w')": "opening",
      "import os; os.open('/etc/hostname', os.O_RDONLY)": "opening",
      "import os; os.remove('/tmp/of-somebody-else')": "os.remove",
      "import socket; socket.create_connection(('127.0.0.1', 9))": "socket.",
      "import socket; socket.socket().bind(('127.0.0.1', 0))": "socket.",
      "import subprocess; subprocess.run(['ls'])": "subprocess.Popen",
      "import os; os.system('ls')": "os.system",
      "import os; os.fork()": "os.fork",
      "import os; os.kill(os.getppid(), 9)": "os.kill",
      "import os; os.mkfifo('../pipe')": "os.mkfifo",
      "import sqlite3; sqlite3.connect('../scores.sqlite')": "sqlite3.connect",
      "import ctypes; ctypes.CDLL(None).system(b'ls')": "ctypes.dlsym",
      "import readline; readline.read_history_file('/etc/passwd')": "opening /etc/passwd",
      "from readline import append_history_file as a; a(0, '../escaped')": "opening",
      "import os; os.openpty()": "os.openpty",
      "import resource; resource.prlimit(1, resource.RLIMIT_CPU)": "resource.prlimit",
      "import _posixsubprocess; _posixsubprocess.fork_exec()": "_posixsubprocess.fork_exec",
      "import importlib; importlib.import_module('_posixshmem').shm_open('/mine', 66, 0o600)":
        "_posixshmem.shm_open",
    };
    // Not each Python has them.
    const rare = {
      "spwd.getspall()": "spwd.getspall",
      "_tkinter.create()": "_tkinter.create",
      "_interpreters.create()": "_interpreters.create",
      "_xxsubinterpreters.create()": "_xxsubinterpreters.create",
      "_testcapi.run_in_subinterp('open(\"/etc/passwd\")')": "_testcapi",
    };
    // All in one program: each starts a Python.
    const code = `
import json
for code in ${JSON.stringify(Object.keys(denied))}:
  try:
    exec(code, {})
    print("nothing")
  except BaseException as error:
    print(json.dumps(type(error).__name__ + ": " + str(error)))
for code in ${JSON.stringify(Object.keys(rare))}:
  try:
    exec("import " + code.split(".")[0] + "; " + code, {})
    print("nothing")
  except BaseException as error:
    print(json.dumps(type(error).__name__ + ": " + str(error)))
# Programs need the modules.
import cmd, code, multiprocessing.resource_tracker, multiprocessing.shared_memory, pdb, readline
readline.write_history_file("own")
readline.read_history_file("own")
print(json.dumps("imported"))
open("../escaped", "w")`;
    const { exitCode, stdout, stderr } = await run("python", code, own);
    expect(stdout.trimEnd().split("\n")).toEqual([
      ...Object.values(denied).map(
        (what) => expect.stringContaining(`PermissionError: the sandbox denies ${what}`) as string,
      ),
      ...Object.values(rare).map(
        (what) =>
          expect.stringMatching(new RegExp(`the sandbox denies ${what}|No module named`)) as string,
      ),
      '"imported"',
    ]);
    // Which nobody catches here.
    expect(exitCode).toBe(1);
    expect(stderr).toContain("PermissionError: the sandbox denies opening");
  });

  test("Node is denied files outside of its folder, the network, processes, threads", async () => {
    const denied = [
      "require('fs').readFileSync('/etc/passwd')",
      "require('fs').writeFileSync('../escaped', '')",
      "require('child_process').execSync('ls')",
      "new (require('worker_threads').Worker)('1', { eval: true })",
      "process.binding('tcp_wrap')",
      "require('net')",
      "import('node:http')",
      "require('module').createRequire('/x.js')('node:dgram')",
      "process.getBuiltinModule('tls')",
      "process.kill(process.ppid, 9)",
    ];
    // All in one program: each starts a Node.
    const tried = denied.map((code) => `[${JSON.stringify(code)}, () => ${code}]`);
    const code = `(async () => {
  for (const [code, work] of [${tried.join(", ")}]) {
    const told = await Promise.resolve().then(work).then(() => "nothing", ({ code }) => code);
    console.log(code + ": " + told);
  }
  require("child_process").execSync("ls");
})();`;
    const { exitCode, stdout, stderr } = await run("javascript", code, own);
    expect(stdout.trimEnd().split("\n")).toEqual(denied.map((one) => `${one}: ERR_ACCESS_DENIED`));
    // Which nobody catches here.
    expect(exitCode).toBe(1);
    expect(stderr).toContain("ERR_ACCESS_DENIED");
  });

  test.each([
    ["python", "(".repeat(100_000)],
    ["python", `x = ${"-".repeat(200_000)}1`],
    ["python", "\0"],
    ["javascript", `x = ${"-".repeat(200_000)}1`],
    ["javascript", "process.exit(0)".padEnd(10, " ") + "}{"],
  ] as const)("a program in %s that cannot be read fails by itself", async (language, code) => {
    const end = await sandboxOf(isolation).run({ language, code });
    expect(end.exitCode).not.toBe(0);
  });

  test("Node has no fetch", async () => {
    const code = "console.log(typeof fetch, typeof WebSocket, typeof EventSource)";
    const { stdout } = await run("javascript", code, own);
    expect(stdout).toBe("undefined undefined undefined\n");
  });
});

test("a folder is removed with its links, and not with what they lead to", async () => {
  const prey = await mkdtemp(join(tmpdir(), "prey-"));
  const folder = join(prey, "run");
  await mkdir(join(folder, "scratch/shut"), { recursive: true });
  await writeFile(join(prey, "kept"), "kept", { mode: 0o400 });
  await symlink(prey, join(folder, "scratch/folder"));
  await symlink(join(prey, "kept"), join(folder, "scratch/-rf"));
  await link(join(prey, "kept"), join(folder, "scratch/shut/other name"));
  await symlink(prey, join(folder, "scratch/shut/inner"));
  await chmod(join(folder, "scratch/shut"), 0);
  // Deeper than a path can say.
  const deepening = "import os\nfor _ in range(3000): os.mkdir('d' * 20); os.chdir('d' * 20)";
  execFileSync("python3", ["-c", deepening], { cwd: join(folder, "scratch") });
  await removeWritten(folder);
  expect(await readdir(prey)).toEqual(["kept"]);
  expect(await readFile(join(prey, "kept"), "utf8")).toBe("kept");
  expect((await stat(join(prey, "kept"))).mode & 0o777).toBe(0o400);
  await expect(removeWritten("/proc/self/root/proc/version")).rejects.toThrow("cannot be removed");
  await rm(prey, { recursive: true });
});

/** Where nothing keeps a program from starting others: one took itself out of its group, and its parent ends before it. */
test.runIf(process.platform === "linux")(
  "a process that left its group ends with its program",
  async () => {
    const temporary = await mkdtemp(join(tmpdir(), "sandboxes-"));
    vi.stubEnv("TMPDIR", temporary);
    const leaving = `(setsid sh -c ': >away; exec sleep 1000' </dev/null >/dev/null 2>&1 3>&- 5>&- &)`;
    const isolation: Isolation = {
      ...plainProcess,
      wrap: ({ command }) => ({
        command: ["sh", "-c", `${leaving}; exec "$@"`, "sh", ...command],
        files: {},
      }),
    };
    const code = "import os\nwhile not os.path.exists('away'): pass\nprint('done')";
    const limits = { timeoutMs: 60_000, memoryLimitMb: 128, maxOutputBytes: 1000 };
    const program = { language: "python", part: { kind: "script" }, code, stdin: "" } as const;
    const runtimes = new Runtimes();
    const end = await runProgram({ ...program, isolation, runtimes, limits });
    vi.unstubAllEnvs();
    expect(end.stdout).toBe("done\n");
    await expect.poll(() => workingIn(temporary)).toBe(0);
    await rm(temporary, { recursive: true });
  },
);

test("programs run a few at a time, and one that nobody waits for is ended", async () => {
  const sandbox = new LocalSandbox({ maxConcurrent: 1 });
  const gone = new AbortController();
  const program = { language: "python", code: "import time\ntime.sleep(1000)" } as const;
  const first = sandbox.run({ ...program, signal: gone.signal });
  const second = sandbox.run({ ...program, signal: AbortSignal.abort(new Error("before")) });
  const third = sandbox.run({ language: "python", code: "print(3)" });
  await expect(second).rejects.toThrow("before");
  gone.abort(new Error("nobody waits"));
  await expect(first).rejects.toThrow("nobody waits");
  expect((await third).stdout).toBe("3\n");
});

/** However a program ends: Node drops what a pipe did not take yet. */
test.each([
  ["ends", ""],
  ["calls process.exit", "process.exit(0)"],
  ["throws", "throw new Error('mine')"],
])("all that a program wrote is heard where it %s", async (_, last) => {
  const code = `
const say = (output) => { for (let i = 0; i < 6_000; i++) output.write("line\\n"); };
process.stdout.write("x".repeat(3_000_000));
say(process.stdout);
say(process.stderr);
process.stdout.write("end");
${last}`;
  const end = await new LocalSandbox().run({ language: "javascript", code });
  expect([end.status, end.stdout.length, end.stdout.slice(-3)]).toEqual([
    "finished",
    3_030_003,
    "end",
  ]);
  expect(end.stderr.split("line\n").length).toBe(6_001);
});

describe("a limit that is no whole number", () => {
  test.each(["python", "javascript"] as const)("holds in %s", async (language) => {
    const eating = {
      python: "x = bytearray(1 << 30)\nprint('ate')",
      javascript:
        "const k = []; for (let i = 0; i < 30; i++) k.push(Buffer.alloc(100 << 20, 1)); console.log('ate')",
    };
    const sandbox = new LocalSandbox({ memoryLimitMb: 100.3, timeoutMs: 9_999.5 });
    expect((await sandbox.run({ language, code: "" })).exitCode).toBe(0);
    const end = await sandbox.run({ language, code: eating[language] });
    expect([end.stdout, end.exitCode === 0]).toEqual(["", false]);
  });

  test("is refused where the shell gets it, and no program runs without it", async () => {
    const limits = { timeoutMs: 60_000, memoryLimitMb: 100.3, maxOutputBytes: 1000 };
    const program = { language: "python", part: { kind: "script" }, code: "", stdin: "" } as const;
    const running = runProgram({
      ...program,
      isolation: plainProcess,
      runtimes: new Runtimes(),
      limits,
    });
    await expect(running).rejects.toMatchObject({
      code: "SANDBOX_UNAVAILABLE",
      message: expect.stringContaining("ulimit -d") as string,
    });
  });
});

test("a time that no timer holds ends no program", async () => {
  for (const timeoutMs of [2 ** 31, Number.MAX_VALUE]) {
    const sandbox = new LocalSandbox({ timeoutMs, memoryLimitMb: 2 ** 32 });
    const end = await sandbox.run({ language: "javascript", code: "console.log(1)" });
    expect(end).toMatchObject({ status: "finished", stdout: "1\n" });
  }
});

test.each([
  [{ maxConcurrent: 0 }],
  [{ maxConcurrent: 0.5 }],
  [{ maxConcurrent: 1.5 }],
  [{ memoryLimitMb: 1e300 }],
  [{ timeoutMs: -1 }],
  [{ memoryLimitMb: Number.NaN }],
  [{ isolation: [] }],
  [{ isolation: ["docker"] }],
  [{ isolation: "process" }],
  [{ isolations: ["landlock"] }],
  [{ memoryLimitMB: 32 }],
])("%j is refused", (options) => {
  expect(() => new LocalSandbox(options as object)).toThrow(
    expect.objectContaining({ code: "INVALID_SCORER_OPTION" }),
  );
});

test("a function is named by an identifier", async () => {
  await expect(python("x = 1", { functionName: "f();import os" })).rejects.toMatchObject({
    code: "INVALID_SCORER_OPTION",
  });
});

test("without a python3 programs of Python are refused, and say why", async () => {
  vi.stubEnv("PATH", "/usr/sbin-that-is-not-there:/bin-neither");
  const sandbox = new LocalSandbox({ isolation: ["process"] });
  const running = sandbox.run({ language: "python", code: "print(1)" });
  await expect(running).rejects.toMatchObject({ code: "SANDBOX_UNAVAILABLE", language: "python" });
  vi.unstubAllEnvs();
});

test("where an isolation is demanded that is not there nothing is run, and the error says why", async () => {
  const demanded = ["bubblewrap", "namespaces"] as const;
  const program = { language: "javascript", code: "console.log(1)" } as const;
  vi.stubEnv("PATH", "/usr/sbin-that-is-not-there");
  const without = new LocalSandbox({ isolation: demanded });
  await expect(without.run(program)).rejects.toMatchObject({
    code: "SANDBOX_UNAVAILABLE",
    message: expect.stringMatching(/bubblewrap: .*; namespaces: /) as string,
  });
  expect(await without.inspect()).toMatchObject({ isolation: undefined });
  vi.unstubAllEnvs();
  const running = new LocalSandbox({ isolation: demanded }).run(program);
  if (demanded.some((one) => here.includes(one))) expect((await running).stdout).toBe("1\n");
  else await expect(running).rejects.toMatchObject({ code: "SANDBOX_UNAVAILABLE" });
});

/** Where the kernel says which process works in which folder. */
test.runIf(process.platform === "linux")(
  "whoever runs programs may be killed: none of them is left",
  async () => {
    const temporary = await mkdtemp(join(tmpdir(), "sandboxes-"));
    const path = fileURLToPath(new URL("./fixtures/sleeping-program.ts", import.meta.url));
    const driver = spawn(process.execPath, [path], {
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, TMPDIR: temporary },
    });
    await expect.poll(() => workingIn(temporary), { timeout: 60_000 }).toBeGreaterThan(1);
    driver.kill("SIGKILL");
    await once(driver, "exit");
    await expect.poll(() => workingIn(temporary), { timeout: 60_000 }).toBe(0);
    await rm(temporary, { recursive: true });
  },
);

async function workingIn(folder: string): Promise<number> {
  const processes = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const places = await Promise.all(
    processes.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => "")),
  );
  return places.filter((place) => place.startsWith(folder)).length;
}
