/** The bench of the quickstart: what it may be told, before anything takes its time. */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { sized } from "../fixtures/suite.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const bench = (...flags: string[]): Promise<{ stdout: string }> =>
  promisify(execFile)(process.execPath, ["bench/quickstart.ts", ...flags], { cwd: root });

test("--help tells of each flag", async () => {
  const { stdout } = await bench("--help");
  for (const flag of ["--seeds", "--steps", "--json", "--markdown"]) {
    expect(stdout).toContain(`  ${flag} `);
  }
});

const wrong: readonly [string[], string][] = [
  [["--seeds", "1,x"], '--seeds takes a whole number of at least 0, not "x"'],
  [["--step", "1"], "Unknown option '--step'"],
  // As the first one.
  [["--seeds", "1,"], '--seeds takes a whole number of at least 0, not ""'],
  [["--steps", "0"], '--steps takes a whole number of at least 1, not "0"'],
];
test.each(sized({ gate: wrong.slice(0, 2), full: wrong }))(
  "%j is what it cannot do: one clear line",
  async (flags, message) => {
    await expect(bench(...flags)).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^bench: .*; see --help\n$/) as string,
      message: expect.stringContaining(message) as string,
    });
  },
);
