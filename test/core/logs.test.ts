import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";

const run = promisify(execFile);
const driver = fileURLToPath(new URL("../fixtures/drivers/logs.ts", import.meta.url));

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

  test("is not lost when process.exit or kill follows at once", () => {
    const numbered = lines.flatMap((line) => /^\(Writer .*\) (line \d+)/.exec(line)?.[1] ?? []);
    const expected = Array.from({ length: 500 }, (_, line) => `line ${line}`);
    expect(numbered.slice(0, 500)).toEqual(expected);
    // The killed one wrote the same lines: each is shown a second time, at once or after it was counted.
    expect(numbered.toSorted()).toEqual([...expected, ...expected].toSorted());
  });

  test("is shown once with a count when several hosts write the same", () => {
    const same = lines.filter((line) => line.includes("the same from all"));
    expect(same.map((line) => line.replace(/^\(.*?\) /, ""))).toEqual([
      "the same from all",
      "the same from all [repeated 4x across cluster]",
    ]);
  });

  test("is shown before shutdown has resolved", () => {
    expect(lines.at(-2)).toBe("driver ends");
  });
});

test.each(["thread", "process"])("logToDriver: false drops it (%s)", async (isolation) => {
  const { stdout } = await runDriver(isolation, false);
  expect(stdout).toBe("driver ends\n");
});

test.each(["thread", "process"])(
  'logToDriver: "raw" leaves it as it is (%s)',
  async (isolation) => {
    const { stdout } = await runDriver(isolation, "raw");
    expect(stdout).toMatch(/^two\nlines and a part\nan object { a: 1 }\n/);
    expect(stdout).not.toContain("(Writer");
  },
);
