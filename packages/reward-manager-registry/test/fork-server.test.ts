/** The process from which programs of Python are forked: what one program leaves to the next one, and how it ends. */

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { LocalSandbox } from "@rayling/reward-manager-registry";
import type { ProgramEnd, SandboxIsolation } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { isolationsHere } from "./fixtures/isolations-here.ts";

vi.setConfig({ testTimeout: 120_000 });

/** Each test finds what is left in a folder of its own. */
let temporary = "";
beforeAll(async () => {
  temporary = await mkdtemp(join(tmpdir(), "forks-"));
  vi.stubEnv("TMPDIR", temporary);
});
afterAll(() => rm(temporary, { recursive: true }));

const folders = (): Promise<string[]> => readdir(temporary);
const run = (sandbox: LocalSandbox, code: string, stdin = ""): Promise<ProgramEnd> =>
  sandbox.run({ language: "python", code, stdin });

/** Those in which there is a process: a new one has a folder of its own. */
const kept = async (): Promise<string> => (await folders()).toSorted().join();

describe.each(await isolationsHere())("by %s", (isolation: SandboxIsolation) => {
  test("programs come from one process, one after the other, and share nothing", async () => {
    await using sandbox = new LocalSandbox({ isolation: [isolation], maxConcurrent: 1 });
    const begun = await run(sandbox, "import sys\nsys.modules['os'].mine = 1\nprint('its answer')");
    const [first, one] = [begun.stdout, await kept()];
    const code = "import os, sys\nprint(hasattr(os, 'mine'), sys.stdin.read())";
    const second = await run(sandbox, code, "its own");
    expect([first, second.stdout]).toEqual(["its answer\n", "False its own\n"]);
    const random = "import random\nprint(random.random())";
    expect((await run(sandbox, random)).stdout).not.toBe((await run(sandbox, random)).stdout);
    const times = "import os\nprint(os.stat('.').st_mtime_ns)\nos.utime('.', ns=(1, 1))";
    expect((await run(sandbox, times)).stdout).toBe((await run(sandbox, times)).stdout);
    // No answer of another one is in its memory, but for this text, which is written otherwise.
    const look = `import gc\nprint([one for one in gc.get_objects() if isinstance(one, (bytes, list)) and b'its' + b' answer' in (one if isinstance(one, bytes) else b'')])`;
    expect((await run(sandbox, look)).stdout).toBe("[]\n");
    expect(await kept()).toBe(one);
  });

  test("where a program leaves a file, a mode or a folder behind, the next one gets another process", async () => {
    await using sandbox = new LocalSandbox({ isolation: [isolation], maxConcurrent: 1 });
    for (const left of [
      "open('left', 'w').write('x')",
      "os.mkdir('left')",
      "os.chmod('.', 0o500)",
    ]) {
      await run(sandbox, `import os\n${left}`);
      const next = await run(sandbox, "import os\nprint(os.listdir('.'))\nopen('new', 'x')");
      expect(next).toMatchObject({ stdout: "[]\n", exitCode: 0 });
    }
    expect((await folders()).length).toBe(0);
  });

  test("one that takes too long says what it wrote, also without its outputs, and the next one goes on", async () => {
    const options = { isolation: [isolation], maxConcurrent: 1, timeoutMs: 1_000 };
    await using sandbox = new LocalSandbox(options);
    await run(sandbox, "print(1)");
    const before = await kept();
    const outputs = "for fd in (1, 2, 3): os.close(fd)";
    const ends = ["", outputs].map((first) =>
      run(sandbox, `import os, time\nos.write(1, b'x')\n${first}\ntime.sleep(1000)`),
    );
    for (const end of await Promise.all(ends)) {
      expect(end).toMatchObject({ status: "timeout", stdout: "x", signal: "SIGKILL" });
    }
    expect((await run(sandbox, "print(2)")).stdout).toBe("2\n");
    expect(await kept()).toBe(before);
  });

  test("each has the processor for so long, however long those before it took", async () => {
    const options = { isolation: [isolation], maxConcurrent: 1, timeoutMs: 20_000 };
    await using sandbox = new LocalSandbox(options);
    await run(sandbox, "import time\nwhile time.process_time() < 1: pass");
    const limit = "resource.getrlimit(resource.RLIMIT_CPU)";
    const code = `import time, resource\nprint(time.process_time() < 1, ${limit})`;
    expect((await run(sandbox, code)).stdout).toBe("True (20, 20)\n");
    const short = { isolation: [isolation], maxConcurrent: 1, timeoutMs: 500 };
    await using other = new LocalSandbox(short);
    expect((await run(other, "while True: pass")).status).toBe("timeout");
  });

  test("one that writes too much is ended, and the next one goes on", async () => {
    const options = { isolation: [isolation], maxConcurrent: 1, maxOutputBytes: 1_000 };
    await using sandbox = new LocalSandbox(options);
    const code = "import sys\nwhile True: sys.stdout.write('x' * 999)";
    const much = await run(sandbox, code);
    expect([much.status, much.stdout]).toEqual(["output-limit", "x".repeat(1_000)]);
    const errors = await run(sandbox, "import sys\nsys.stderr.write('y' * 100_000)\nprint(1)");
    expect([errors.stdout, errors.stderr]).toEqual(["1\n", "y".repeat(65_536)]);
  });
});

test("programs that use numpy come from a process that has loaded it, with a state of their own", async ({
  skip,
}) => {
  await using sandbox = new LocalSandbox({ maxConcurrent: 1 });
  const found = await run(sandbox, "import numpy");
  skip(found.exitCode !== 0, "there is no numpy");
  const loaded = "import sys\nprint('num' + 'py' in sys.modules)";
  expect((await run(sandbox, `${loaded} # numpy`)).stdout).toBe("True\n");
  const before = await kept();
  expect((await run(sandbox, `${loaded} # np`)).stdout).toBe("True\n");
  expect(await kept()).toBe(before);
  expect((await run(sandbox, loaded)).stdout).toBe("False\n");
  // One at a time, whatever it has loaded.
  expect((await folders()).length).toBe(1);
  const random = "print(np.random.rand())";
  expect((await run(sandbox, random)).stdout).not.toBe((await run(sandbox, random)).stdout);
});

const programs = {
  "a text of its own": "import os\nout = os.fdopen(1, 'w')\nout.write('a')",
  "an output that is another's":
    "import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer)\nprint('a', end='')",
  "an output that nobody names":
    "import builtins, functools\nbuiltins.kept = functools.partial(print, 'a', end='', file=open(1, 'w'))\nkept()",
  "what runs at the end":
    "import atexit, sys, io\nsys.stdout = io.StringIO()\nprint('a', end='')\natexit.register(lambda: sys.__stdout__.write(sys.stdout.getvalue()))",
  "an object that goes, by a name of the program":
    "import os\ntext = b'a'\nclass A:\n  def __del__(self): os.write(1, text)\nkept = A()",
  "a generator that ends, by a name of the program":
    "text = 'a'\ndef f():\n  try: yield\n  finally: print(text, end='')\ngen = f()\nnext(gen)",
  "an output of its own, which writes when it is flushed": `
import os, sys
class Out:
  def __init__(self): self.parts = []
  def write(self, text): self.parts.append(text)
  def flush(self): os.write(1, ''.join(self.parts).encode()); self.parts.clear()
sys.stdout = Out()
print('a', end='')`,
  "the fast output of competitions": `
import os, sys
from io import BytesIO, IOBase
class FastIO(IOBase):
  def __init__(self, file):
    self._fd = file.fileno()
    self.buffer = BytesIO()
    self.write = self.buffer.write
  def flush(self):
    os.write(self._fd, self.buffer.getvalue())
    self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
  def __init__(self, file):
    self.buffer = FastIO(file)
    self.flush = self.buffer.flush
    self.write = lambda text: self.buffer.write(text.encode('ascii'))
sys.stdout = IOWrapper(sys.stdout)
print('a', end='')`,
  "a thread":
    "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('a', end=''))).start()",
  "a thread that is not waited for": `
import threading, time
def work():
  while True:
    try: text
    except NameError: print('BROKEN')
text = 'a'
threading.Thread(target=work, daemon=True).start()
print(text, end='')`,
};

test("all that it wrote is heard", async () => {
  await using sandbox = new LocalSandbox({ maxConcurrent: 2 });
  const ends = Object.entries(programs).map(async ([by, code]) => [by, await run(sandbox, code)]);
  const heard = { exitCode: 0, stdout: "a", stderr: "" };
  expect(Object.fromEntries(await Promise.all(ends))).toMatchObject(
    Object.fromEntries(Object.keys(programs).map((by) => [by, heard])),
  );
});

test("output that cannot be written is a failure, as Python says it", async () => {
  await using sandbox = new LocalSandbox();
  const { exitCode, stderr } = await run(sandbox, "import os\nprint(1)\nos.close(1)");
  expect([exitCode, stderr]).toEqual([120, expect.stringContaining("Bad file descriptor")]);
});

/** The processes of Python below one, by their ids. */
function ofPython(root: number): number[] {
  const lines = execFileSync("ps", ["-eo", "pid,ppid,args"], { encoding: "utf8" }).split("\n");
  const all = lines.map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)/.exec(line) ?? []);
  const below = (id: number): number[] =>
    all.flatMap(([, pid, parentId, args = ""]) => {
      if (Number(parentId) !== id) return [];
      const isPython = /^\S*python\S* .*runner\.py serve/.test(args);
      return [...(isPython ? [Number(pid)] : []), ...below(Number(pid))];
    });
  return below(root);
}

test("where the process is killed, nothing is said of a program, and the next one runs", async () => {
  await using sandbox = new LocalSandbox({ maxConcurrent: 1 });
  const lost = run(sandbox, "import time\ntime.sleep(1000)");
  // It, what collects, and the program.
  await expect.poll(() => ofPython(process.pid).length).toBe(3);
  process.kill(Math.min(...ofPython(process.pid)), "SIGKILL");
  await expect(lost).rejects.toMatchObject({ code: "SANDBOX_RESOURCE" });
  expect((await run(sandbox, "print(1)")).stdout).toBe("1\n");
  // While nobody needs it.
  for (const pid of ofPython(process.pid)) process.kill(pid, "SIGKILL");
  expect((await run(sandbox, "print(2)")).stdout).toBe("2\n");
});

test("one that stands still says nothing of the next program, which runs on another", async () => {
  await using sandbox = new LocalSandbox({ maxConcurrent: 1, timeoutMs: 1000 });
  await run(sandbox, "print(1)");
  for (const pid of ofPython(process.pid)) process.kill(pid, "SIGSTOP");
  expect(await run(sandbox, "print(2)")).toMatchObject({ status: "finished", stdout: "2\n" });
});

test("a program that could not begin in its time has no verdict", async () => {
  // No Node starts in 2 ms of the clock.
  await using sandbox = new LocalSandbox({ timeoutMs: 1 });
  await expect(sandbox.run({ language: "javascript", code: "" })).rejects.toMatchObject({
    code: "SANDBOX_RESOURCE",
    message: expect.stringMatching(/had not begun the program after \d+ ms \(timeoutMs/),
  });
});

test("exit codes of programs are no signals", async () => {
  await using sandbox = new LocalSandbox({ maxConcurrent: 1 });
  for (const code of [129, 137, 152, 255]) {
    const end = await run(sandbox, `import sys; sys.exit(${code})`);
    expect([end.exitCode, end.signal]).toEqual([code, null]);
  }
  const killed = await run(sandbox, "import os; os.abort()");
  expect([killed.exitCode, killed.signal]).toEqual([null, "SIGABRT"]);
});

/** It goes with the test, where that fails, too: others count what there is. */
async function folderOfTest(prefix: string): Promise<string> {
  const folder = await mkdtemp(join(temporary, prefix));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Puts a folder with a name of Python first on the path, and then the other ones. */
async function otherPython(
  ...others: readonly string[]
): Promise<{ readonly folder: string; readonly real: string }> {
  const program = "import sys; print(sys.executable)";
  const real = execFileSync("python3", ["-c", program], { encoding: "utf8" }).trim();
  const folder = await folderOfTest("python-");
  await symlink(real, join(folder, "python3"));
  const before = process.env["PATH"] ?? "";
  process.env["PATH"] = [folder, ...others, before].join(":");
  onTestFinished(() => void (process.env["PATH"] = before));
  return { folder, real };
}

test("where its Python has gone, the one on the path now is used, for JavaScript, too", async () => {
  const { folder, real } = await otherPython();
  const sandbox = new LocalSandbox({ maxConcurrent: 1 });
  onTestFinished(() => sandbox.close());
  const where = "import sys; print(sys.executable)";
  expect((await run(sandbox, where)).stdout).toBe(`${folder}/python3\n`);
  await rm(folder, { recursive: true });
  await sandbox.close();
  expect((await run(sandbox, where)).stdout).toBe(`${real}\n`);
  const other = await sandbox.run({ language: "javascript", code: "console.log(2)" });
  expect(other.stdout).toBe("2\n");
});

test.for(await isolationsHere())(
  "where a Python that sets walls up is found no more, nothing runs without them: by %s",
  async (isolation) => {
    const broken = await folderOfTest("broken-");
    const { folder } = await otherPython(broken);
    await using sandbox = new LocalSandbox({ maxConcurrent: 1, isolation: [isolation] });
    const program = { language: "javascript", code: "console.log(1)" } as const;
    expect((await sandbox.run(program)).stdout).toBe("1\n");
    // What was found has gone, and the next one on the path does not run.
    await rm(folder, { recursive: true });
    await writeFile(join(broken, "python3"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    const refused = { code: "SANDBOX_UNAVAILABLE" };
    await expect(run(sandbox, "print(1)")).rejects.toMatchObject(refused);
    // It sets the same walls up itself.
    if (isolation === "bubblewrap") expect((await sandbox.run(program)).stdout).toBe("1\n");
    else await expect(sandbox.run(program)).rejects.toMatchObject(refused);
    // One that is there again.
    await rm(broken, { recursive: true });
    expect((await sandbox.run(program)).stdout).toBe("1\n");
  },
);

test("where its files are gone, another process takes its place", async () => {
  await using sandbox = new LocalSandbox({ maxConcurrent: 1 });
  for (const gone of ["code/confinement.json", ""]) {
    await run(sandbox, "print(1)");
    const [folder = ""] = await folders();
    await rm(join(temporary, folder, gone), { recursive: true });
    expect((await run(sandbox, "print(2)")).stdout).toBe("2\n");
  }
});

test("limits of output are of what they say, and may be any number that a text has room for", async () => {
  await using sandbox = new LocalSandbox({ maxOutputBytes: 65_536 });
  const errors = await run(sandbox, "import sys\nsys.stderr.write('y' * 100_000)\nprint(1)");
  expect(errors).toMatchObject({ status: "finished", stdout: "1\n" });
  for (const maxOutputBytes of [1000.5, 2 ** 28]) {
    await using other = new LocalSandbox({ maxOutputBytes });
    expect((await run(other, "print(1)")).stdout).toBe("1\n");
  }
  // A text has no room for more.
  expect(() => new LocalSandbox({ maxOutputBytes: 2 ** 28 + 1 })).toThrow(
    "maxOutputBytes must be a number above 0, up to 268435456",
  );
  await using large = new LocalSandbox({ maxOutputBytes: 64 << 20, memoryLimitMb: 48 });
  const much = await run(large, "for _ in range(40): print('x' * (1 << 20), end='')");
  expect([much.status, much.stdout.length]).toEqual(["finished", 40 << 20]);
});

test("programs that nobody waits for are ended, and what they were run in is removed", async () => {
  await using sandbox = new LocalSandbox({ maxConcurrent: 2 });
  const gone = new AbortController();
  const code = "import time\ntime.sleep(1000)";
  const ends = [1, 2].map(() => sandbox.run({ language: "python", code, signal: gone.signal }));
  await expect.poll(async () => (await folders()).length).toBe(2);
  gone.abort(new Error("nobody waits"));
  await Promise.all(ends.map((end) => expect(end).rejects.toThrow("nobody waits")));
  expect(await folders()).toEqual([]);
});

test("what is kept for programs to come holds no process, and goes with close", async () => {
  const sandbox = new LocalSandbox({ maxConcurrent: 1 });
  const held = (): string[] =>
    process.getActiveResourcesInfo().filter((one) => /Process|Pipe/.test(one));
  await sandbox.isolation();
  const before = held();
  await run(sandbox, "print(1)");
  expect(held()).toEqual(before);
  expect((await folders()).length).toBe(1);
  await sandbox.close();
  await sandbox.close();
  expect(await folders()).toEqual([]);
  expect((await run(sandbox, "print(2)")).stdout).toBe("2\n");
  await sandbox.close();
});

test("one whose program runs when its sandbox closes ends behind the programs of that time", async () => {
  const sandbox = new LocalSandbox({ maxConcurrent: 2 });
  const gone = new AbortController();
  const code = "import time\ntime.sleep(1000)";
  const endless = sandbox.run({ language: "python", code, signal: gone.signal });
  const waiting = ["print(1)", "print(2)", "print(3)"].map((one) => run(sandbox, one));
  await expect.poll(async () => (await folders()).length).toBe(2);
  await sandbox.close();
  await Promise.all(waiting);
  // That of the endless one.
  expect((await folders()).length).toBe(1);
  gone.abort(new Error("nobody waits"));
  await expect(endless).rejects.toThrow("nobody waits");
  expect(await folders()).toEqual([]);
});

test("where a thread that keeps one is ended, nothing of it is left", async () => {
  const path = new URL("../src/sandbox/local-sandbox.ts", import.meta.url).href;
  const code = `
    const { LocalSandbox } = await import(${JSON.stringify(path)});
    const { stdout } = await new LocalSandbox({ maxConcurrent: 1 }).run({ language: "python", code: "print(1)" });
    (await import("node:worker_threads")).parentPort.postMessage(stdout);
    setInterval(() => undefined, 1e6);`;
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  const [said] = await once(thread, "message");
  expect([said, (await folders()).length]).toEqual(["1\n", 1]);
  await thread.terminate();
  await expect.poll(folders).toEqual([]);
});
