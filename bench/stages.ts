/**
 * The whole benchmark: every suite in a process of its own, so that none finds the heap, the
 * threads or the compiled code of another.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Progress, Report, Table } from "./measure/report.ts";
import { type Suite, suites } from "./suites.ts";
import { allOnOneCpu } from "./targets.ts";

const main = join(import.meta.dirname, "main.ts");

/** All that there is to report, and the suites that failed; they have said why. */
export interface Stages {
  readonly report: Report;
  readonly failed: readonly string[];
}

/** @param flags go to each of them */
export async function runStages(flags: readonly string[], say: Progress): Promise<Stages> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-bench-"));
  const reports: Record<string, Report> = {};
  const failed: string[] = [];
  try {
    for (const { name, suite, prefix } of stages()) {
      say(name);
      const json = join(folder, "report.json");
      const command = [
        ...prefix,
        process.execPath,
        main,
        "--only",
        suite,
        "--json",
        json,
        ...flags,
      ];
      if (!(await succeeds(command))) {
        failed.push(name);
        continue;
      }
      const report = JSON.parse(await readFile(json, "utf8")) as Report;
      reports[name] = prefix.length === 0 ? report : ofOneCpu(report);
    }
  } finally {
    await rm(folder, { recursive: true });
    say("");
  }
  const all = Object.values(reports);
  const report: Report = {
    tables: all.flatMap(({ tables }) => tables),
    measured: Object.fromEntries(all.flatMap(({ measured }) => Object.entries(measured))),
    details: reports,
  };
  return { report, failed };
}

interface Stage {
  readonly name: string;
  readonly suite: Suite;
  /** Goes before the command. */
  readonly prefix: readonly string[];
}

function stages(): readonly Stage[] {
  return suites.flatMap((suite) => [
    { name: suite, suite, prefix: [] },
    ...(inBothStates.has(suite) && canPin()
      ? [{ name: `${suite}, one CPU`, suite, prefix: pin }]
      : []),
  ]);
}

/** Suites whose figures hang on how many CPUs there are. */
const inBothStates: ReadonlySet<Suite> = new Set(["serial", "in-flight", "ray-rows", "rewards"]);

/** All threads on one CPU: without the noise of wake-ups. */
const pin = ["taskset", "-c", "1"];

function canPin(): boolean {
  try {
    execFileSync("taskset", [...pin.slice(1), "true"], { stdio: "ignore" });
    return true;
  } catch {
    // Not Linux, or only one CPU: the table is left out.
    return false;
  }
}

function ofOneCpu({ tables, measured, details }: Report): Report {
  return {
    tables: tables.map((table: Table) => ({ ...table, title: `${table.title}, one CPU` })),
    measured: allOnOneCpu(measured),
    details,
  };
}

async function succeeds([file = "", ...args]: readonly string[]): Promise<boolean> {
  const child = spawn(file, args, { stdio: ["ignore", "ignore", "inherit"] });
  const [code]: unknown[] = await once(child, "exit");
  return code === 0;
}
