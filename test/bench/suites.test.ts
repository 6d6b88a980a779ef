/** Every suite of the benchmark, in short: not its figures, but that it runs and prints them. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type Suite, suites } from "../../bench/suites.ts";
import { sized } from "../fixtures/suite.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

/** One that starts hosts: it has what all suites have in common, flags, plans and tables. */
const inGate = ["serial"] as const;

test.each(sized<readonly Suite[]>({ gate: inGate, full: suites }))(
  "%s",
  async (suite) => {
    const { stdout } = await run(process.execPath, ["bench/main.ts", "--only", suite, "--quick"], {
      cwd: root,
    });
    const tables = stdout.split("\n\n").slice(1);
    expect(tables.length).toBeGreaterThan(0);
    expect(stdout).not.toMatch(/NaN|undefined/);
  },
  600_000,
);
