/** What the gate does without says why, and the report of a run names what is slow. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { longFiles } from "../fixtures/long-files-first.ts";
import { type FileTime, timeReport } from "../fixtures/where-time-went.ts";
import { root } from "./source.ts";

const files = globSync("{test,packages/*/test}/**/*.test.ts", {
  cwd: root,
  exclude: (path) => /(^|\/)(node_modules|dist)$/.test(path),
});
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");

test("each reason to do without a case in the gate is a sentence", () => {
  const reasons = files.flatMap((file) =>
    [...textOf(file).matchAll(/\binFull\(\s*("(?:[^"\\]|\\.)*")?/g)].map(
      ([, reason = ""]) => `${file}: ${reason}`,
    ),
  );
  expect(reasons.length).toBeGreaterThan(5);
  expect(reasons.filter((reason) => !/: "[^"]{20,}"$/.test(reason))).toEqual([]);
});

test("each file that only the full suite has begins with why", () => {
  const full = files.filter((file) => file.endsWith(".full.test.ts"));
  expect(full.filter((file) => !textOf(file).startsWith("/**"))).toEqual([]);
});

test("each file that begins before the others is there, once", () => {
  expect(longFiles.filter((file) => !files.includes(file))).toEqual([]);
  expect(new Set(longFiles).size).toBe(longFiles.length);
});

describe("where the time went", () => {
  const time = (file: string, seconds: number, project = "thread"): FileTime => ({
    project,
    file,
    ms: 1000 * seconds,
    tests: 2,
  });
  const times = [
    time("packages/core/test/link.test.ts", 4),
    time("packages/core/test/depth.test.ts", 1, "pure"),
    time("test/core/actors.test.ts", 31),
    time("test/core/actors.test.ts", 2, "tcp"),
    ...Array.from({ length: 9 }, (_, index) => time(`test/bench/${index}.test.ts`, 0.5)),
  ];
  const linesOf = (isGate: boolean): string[] =>
    timeReport(times, isGate)
      .split("\n")
      .map((line) => line.trim());

  test("is told by package, the slowest first, other isolations by themselves", () => {
    expect(linesOf(true).slice(2, 6)).toEqual([
      "31.0  test/core (1 files, 2 tests)",
      "5.0  packages/core (2 files, 4 tests)",
      "4.5  test/bench (9 files, 18 tests)",
      "2.0  test/core on tcp (1 files, 2 tests)",
    ]);
  });

  test("names the ten slowest files", () => {
    const lines = linesOf(true);
    const from = lines.indexOf("The 10 slowest files");
    expect(lines.slice(from + 1, from + 4)).toEqual([
      "31.0  test/core/actors.test.ts (thread)",
      "4.0  packages/core/test/link.test.ts (thread)",
      "2.0  test/core/actors.test.ts (tcp)",
    ]);
    expect(lines.slice(from + 1, lines.indexOf("", from))).toHaveLength(10);
  });

  test("a file over 30 s is a finding in the gate, and none in the full suite", () => {
    expect(linesOf(true).slice(-2)).toEqual([
      "FINDING: over 30 s, too slow for the gate",
      "31.0  test/core/actors.test.ts (thread)",
    ]);
    expect(linesOf(false).join("\n")).not.toContain("FINDING");
  });
});
