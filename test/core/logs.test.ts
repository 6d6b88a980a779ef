import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { sized } from "../fixtures/suite.ts";

const run = promisify(execFile);
const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/drivers/${name}.ts`, import.meta.url));
const driver = pathOf("logs");

/** How often a line was written: the first is shown as it is, later ones as it is or counted, as the time between them has it. */
function countOf(lines: readonly string[], text: string): number {
  const shown = lines.flatMap((line) => {
    const [, found, count] =
      /^\(Writer .*?\) (.*?)(?: \[repeated (\d+)x across cluster\])?$/.exec(line) ?? [];
    return found === text ? [count] : [];
  });
  expect(shown[0]).toBeUndefined();
  return shown.reduce((sum, count) => sum + Number(count ?? 1), 0);
}

interface Written {
  readonly stdout: string;
  readonly stderr: string;
}

const runDriver = (isolation: string, logToDriver: unknown): Promise<Written> =>
  run(process.execPath, [driver, isolation, JSON.stringify(logToDriver)]);

describe.each(["thread", "process"])("what hosts write (%s)", (isolation) => {
  let written: Written;
  let lines: readonly string[];

  beforeAll(async () => {
    written = await runDriver(isolation, true);
    lines = written.stdout.split("\n");
  });
  const lineOf = (text: string): readonly string[] => lines.filter((line) => line.endsWith(text));

  test("comes in whole lines, with the class, the actor and the host before each", () => {
    for (const text of ["two", "lines and a part", "an object { a: 1 }", "after an await", "ü€"]) {
      expect(lineOf(text)[0]).toBe(
        `${/^\(Writer actor-\w{6} host-\w{6}\) /.exec(lineOf(text)[0] ?? "")?.[0] ?? "no prefix"}${text}`,
      );
      expect(lineOf(text)).toHaveLength(1);
    }
  });

  test("goes from stderr to stderr", () => {
    expect(written.stderr).toMatch(/^\(Writer actor-\w{6} host-\w{6}\) to stderr$/m);
    expect(written.stdout).not.toContain("to stderr");
  });

  test("has the name of the task that wrote it", () => {
    expect(lineOf("from a task").join()).toMatch(/^\(writeTask host-\w{6}\) from a task$/);
  });

  test("is shown without a line break at the end of the host, however that came", () => {
    expect(lineOf(" never ended")).toHaveLength(1);
    expect(lineOf(" open end")).toHaveLength(1);
  });

  test("is not lost when process.exit follows at once, nor, in a thread, when it is killed", () => {
    const numbered = lines.flatMap((line) => /^\(Writer .*\) (line \d+)$/.exec(line)?.[1] ?? []);
    const expected = Array.from({ length: 500 }, (_, line) => `line ${line}`);
    expect(numbered.slice(0, 500)).toEqual(expected);
    // The killed one wrote the same lines: each is shown a second time, at once or after it was counted.
    // Of a process that is killed only what its pipe has taken.
    const ofKilled = isolation === "thread" ? 500 : numbered.length - 500;
    expect(numbered.toSorted()).toEqual([...expected, ...expected.slice(0, ofKilled)].toSorted());
  });

  test("is shown once with a count when several hosts write the same", () => {
    expect(countOf(lines, "the same from all")).toBe(5);
  });

  test("is shown before shutdown has resolved", () => {
    expect(lines.at(-2)).toBe("driver ends");
  });
});

/** Threads write into streams, processes into pipes; each way of showing is seen on one of them in the gate. */
test.each(sized({ gate: ["thread"], full: ["thread", "process"] }))(
  "logToDriver: false drops it (%s)",
  async (isolation) => {
    const { stdout } = await runDriver(isolation, false);
    expect(stdout).toBe("driver ends\n");
  },
);

test.each(sized({ gate: ["process"], full: ["thread", "process"] }))(
  'logToDriver: "raw" leaves it as it is (%s)',
  async (isolation) => {
    const { stdout } = await runDriver(isolation, "raw");
    expect(stdout).toMatch(/^two\nlines and a part\nan object { a: 1 }\n/);
    expect(stdout).not.toContain("(Writer");
  },
);

test("what was counted is shown, too, when the driver ends without shutdown", async () => {
  const { stdout } = await run(process.execPath, [pathOf("logs-no-shutdown")]);
  expect(countOf(stdout.trim().split("\n"), "the same")).toBe(3);
});
