/** A machine that cannot run a program at the moment: that is no fault of the program, and no reason to hold the next one by less. */

import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalSandbox, scorePrimeCode } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { namespaces } from "../src/sandbox/isolation/namespaces.ts";
import { notReached } from "../src/sandbox/program-run.ts";
import { isolationsHere } from "./fixtures/isolations-here.ts";

vi.setConfig({ testTimeout: 120_000 });

const [best, ...weaker] = await isolationsHere();

/** A disk of 3 MB, which only root can make. */
const disk = mkdtempSync(join(tmpdir(), "small-disk-"));
let isThere = false;
try {
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], { stdio: "ignore" });
  isThere = true;
} catch {
  console.warn("not tested here: no small disk can be mounted");
}
beforeAll(() => void vi.stubEnv("TMPDIR", disk));
afterAll(() => {
  vi.unstubAllEnvs();
  if (isThere) execFileSync("umount", ["-l", disk]);
  rmSync(disk, { recursive: true });
});

const filling = join(disk, "filling");
/** Leaves so many KiB. */
function fill(left: number): void {
  rmSync(filling, { force: true });
  const room = Number(
    execFileSync("df", ["-k", "--output=avail", disk], { encoding: "utf8" }).split("\n")[1],
  );
  writeFileSync(filling, Buffer.alloc(Math.max(0, room - left) * 1024));
}
const empty = (): void => rmSync(filling, { force: true });

const full = {
  code: "SANDBOX_RESOURCE",
  message: expect.stringMatching(/ENOSPC: no space left on device|is full/),
};

test.runIf(isThere)("a disk that is full at its first program takes no wall away", async () => {
  await using sandbox = new LocalSandbox();
  const program = { language: "python", code: "print(1)" } as const;
  fill(0);
  await expect(sandbox.inspect()).rejects.toMatchObject(full);
  await expect(sandbox.run(program)).rejects.toMatchObject(full);
  empty();
  expect(await sandbox.isolation()).toBe(best);
  expect((await sandbox.run(program)).stdout).toBe("1\n");
  // It is in use by then.
  fill(0);
  await expect(sandbox.run({ ...program, language: "javascript" })).rejects.toMatchObject(full);
  empty();
});

test.runIf(isThere).for([best, ...weaker])(
  "a right program that the disk fails scores no 0: by %s",
  async (isolation = "process") => {
    await using sandbox = new LocalSandbox({ isolation: [isolation] });
    const code = "```python\nopen('a', 'w').write('y' * 300_000)\nprint(int(input()) * 2)\n```";
    const tests = { inputs: ["1\n", "2\n"], outputs: ["2\n", "4\n"] };
    const score = (text: string) => scorePrimeCode(text, tests, { sandbox });
    expect((await score(code)).score).toBe(1);
    fill(200);
    // A folder in memory is a program's own, and has room.
    const isOnDisk = ["landlock", "process"].includes(isolation);
    if (isOnDisk) await expect(score(code)).rejects.toMatchObject(full);
    else expect((await score(code)).score).toBe(1);
    empty();
    const wrong = "```python\nopen('a', 'w').write('y' * 3000)\nraise ValueError()\n```";
    expect((await score(wrong)).score).toBe(0);
  },
);

test.each([
  // As Node 24 says it under a limit of processes, above its trace.
  ["  #  Assertion failed: (0) == (uv_thread_create(t.get(), start_thread, this))", "RESOURCE"],
  ["sh: 17: Cannot fork", "RESOURCE"],
  ["  #  Assertion failed: (env) != nullptr", "UNAVAILABLE"],
])("an end before the program began, by %j, is SANDBOX_%s", (said, code) => {
  const stderr = said.startsWith("sh") ? said : `${said}\n 1: a\n 2: b\n 3: c`;
  const end = {
    reason: "ended",
    exitCode: 134,
    signal: null,
    stdout: "",
    stderr,
    reached: "",
    reported: "",
    durationMs: 1,
  } as const;
  expect(notReached("javascript", end, namespaces)).toMatchObject({ code: `SANDBOX_${code}` });
});

/** Fills its table of descriptors, frees them one by one, and runs a program each time. */
const crowded = `
  import { closeSync, openSync } from "node:fs";
  import { LocalSandbox } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
  const sandbox = new LocalSandbox({ maxConcurrent: 1 });
  const run = async () => {
    const ends = ["python", "javascript"].map((language) =>
      sandbox.run({ language, code: "" }).then(({ exitCode }) => exitCode, ({ code }) => code));
    const said = await Promise.all(ends);
    await sandbox.close();
    return said;
  };
  const seen = new Set(await run());
  const held = [];
  try {
    for (;;) held.push(openSync("/dev/null"));
  } catch {}
  for (let free = 0; free < 26; free++) {
    for (const one of await run()) seen.add(one);
    closeSync(held.pop());
  }
  console.log(JSON.stringify([...seen].sort()));`;

test("too few file descriptors end no driver, and are no fault of a program", () => {
  const limited = 'ulimit -n 400; exec "$0" --input-type=module -e "$1"';
  const said = execFileSync("sh", ["-c", limited, process.execPath, crowded], { encoding: "utf8" });
  expect(JSON.parse(said)).toEqual([0, "SANDBOX_RESOURCE"]);
});

test("programs run, and have nothing of it, where a descriptor is inherited whose number is above the limit", () => {
  const code = `
    import { LocalSandbox } from ${JSON.stringify(new URL("../src/sandbox/local-sandbox.ts", import.meta.url).href)};
    await using sandbox = new LocalSandbox();
    const look = (fd) => ({
      python: "import os\\ntry: print(os.fstat(" + fd + "))\\nexcept OSError as error: print(error)",
      javascript: "try { console.log(require('fs').fstatSync(" + fd + ")) } catch (error) { console.log(error.code) }",
    });
    const said = [50, 100, 300].flatMap((fd) => Object.entries(look(fd))).map(async ([language, code]) => {
      const { stdout, stderr } = await sandbox.run({ language, code });
      return stdout + stderr;
    });
    console.log(JSON.stringify(await Promise.all(said)));`;
  const limited = 'ulimit -n 128; exec "$0" --input-type=module -e "$1"';
  const secret = openSync(import.meta.filename, "r");
  const stdio = Array.from({ length: 301 }, (_, fd) =>
    [50, 100, 300].includes(fd) ? secret : "ignore",
  );
  const command = ["-c", limited, process.execPath, code];
  const said = execFileSync("sh", command, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit", ...stdio.slice(3)],
  });
  // The lowest one is /dev/null there.
  const gone = ["[Errno 9] Bad file descriptor\n", "EBADF\n"];
  const isDevice = expect.stringMatching(/st_mode=8630|isCharacterDevice|rdev: 259/);
  expect(JSON.parse(said)).toEqual([gone[0], isDevice, ...gone, ...gone]);
  closeSync(secret);
});
