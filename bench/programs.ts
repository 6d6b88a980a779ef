/**
 * Question: what does it cost to run a program of a model in a sandbox? Programs of Python and
 * JavaScript, one at a time, by each isolation that this machine has, beside a bare Python that is
 * started for the same program and held by nothing.
 *
 * All take turns within each round. CPU is that of this process and of all below it. Every answer
 * is compared with what it must be.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { LocalSandbox } from "@rayling/reward-manager-registry";
import type { Program, ProgramEnd } from "@rayling/reward-manager-registry";
import { readFlags, runCommand, takes, whole } from "./measure/command-line.ts";
import { percentile } from "./measure/interleave.ts";
import { describeMachine, machineLines } from "./measure/machine.ts";
import { markdownTables } from "./measure/report.ts";

const usage = `node bench/programs.ts [flags]

Programs of a model in a sandbox, by each isolation of this machine.

  --rounds N       default 10
  --runs N         of each program in a round; default 10
  --help           print this`;

const kinds = { rounds: takes.text, runs: takes.text, help: takes.nothing } as const;

interface Contestant {
  readonly name: string;
  readonly run: () => Promise<string>;
  readonly wanted: string;
  /** Of each round, per run. */
  readonly ms: number[];
  readonly cpuMs: number[];
}

const script = { language: "python", code: "print(int(input()) + 1)", stdin: "41\n" } as const;
const programs: Readonly<Record<string, readonly [Program, (end: ProgramEnd) => unknown, string]>> =
  {
    "a program of Python": [script, ({ stdout }) => stdout, "42\n"],
    "a function of Python": [
      { language: "python", code: "def f(n):\n  return n + 1", stdin: "41", functionName: "f" },
      ({ value }) => value,
      "42",
    ],
    "lines of `assert_case`": [
      { language: "python", code: "def f(n):\n  return n + 1", test: "assert f(41) == 42" },
      ({ isTestPassed }) => isTestPassed,
      "true",
    ],
    "a program of JavaScript": [
      {
        language: "javascript",
        code: "console.log(1 + Number(require('fs').readFileSync(0, 'utf8')))",
        stdin: "41\n",
      },
      ({ stdout }) => stdout,
      "42\n",
    ],
  };

/** The interpreter itself: the one on the path may be a script that looks for it. */
const python = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], {
  encoding: "utf8",
}).trim();

async function bare(): Promise<string> {
  const child = spawn(python, ["-I", "-c", script.code], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(script.stdin);
  const [output] = await Promise.all([text(child.stdout), once(child, "close")]);
  return output;
}

async function main(args: readonly string[]): Promise<void> {
  const flags = readFlags(args, kinds);
  if (flags.help === true) return console.log(usage);
  const rounds = whole("--rounds", flags.rounds ?? "10");
  const runs = whole("--runs", flags.runs ?? "10");
  const sandboxes = await sandboxesHere();
  const contestants = contestantsOf(sandboxes);
  for (let round = 0; round <= rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const one = contestants[(turn + round) % contestants.length];
      if (one !== undefined) await measure(one, runs, round > 0);
    }
  }
  for (const sandbox of sandboxes.values()) await sandbox.close();
  const lines = machineLines(describeMachine(["node bench/programs.ts", ...args]));
  const title = `Programs, one at a time, medians of ${rounds} rounds of ${runs} runs`;
  const rows = [["", "ms a run", "x bare", "CPU ms a run", "x bare"], ...rowsOf(contestants)];
  console.log(`${lines.join("\n")}\n\n${markdownTables([{ title, rows }])}`);
}

async function sandboxesHere(): Promise<Map<string, LocalSandbox>> {
  const here = new Map<string, LocalSandbox>();
  for (const isolation of ["bubblewrap", "namespaces", "landlock", "process"] as const) {
    const sandbox = new LocalSandbox({ isolation: [isolation] });
    if ((await sandbox.inspect()).isolation !== undefined) here.set(isolation, sandbox);
  }
  return here;
}

/** The bare Python is the first one. */
function contestantsOf(sandboxes: ReadonlyMap<string, LocalSandbox>): Contestant[] {
  const bareOne = { name: "a bare Python, started for it", run: bare, wanted: "42\n" };
  const confined = [...sandboxes].flatMap(([isolation, sandbox]) =>
    Object.entries(programs).map(([name, [program, answer, wanted]]) => ({
      name: `${name}, ${isolation}`,
      run: async (): Promise<string> => String(answer(await sandbox.run(program))),
      wanted,
    })),
  );
  return [bareOne, ...confined].map((one) => ({ ...one, ms: [], cpuMs: [] }));
}

function rowsOf(contestants: readonly Contestant[]): string[][] {
  const [first] = contestants;
  const half = (list: readonly number[]): number =>
    percentile(
      list.toSorted((a, b) => a - b),
      0.5,
    );
  const toBare = (list: readonly number[], by: readonly number[] = []): string =>
    (half(list) / half(by)).toFixed(2);
  return contestants.map(({ name, ms, cpuMs }) => [
    name,
    half(ms).toFixed(1),
    toBare(ms, first?.ms),
    half(cpuMs).toFixed(1),
    toBare(cpuMs, first?.cpuMs),
  ]);
}

async function measure(one: Contestant, runs: number, counts: boolean): Promise<void> {
  // What was kept for it may have ended meanwhile.
  await one.run();
  const [cpuBefore, before] = [cpuBelow(process.pid), performance.now()];
  for (let at = 0; at < runs; at++) {
    const got = await one.run();
    if (got !== one.wanted) {
      throw new Error(`${one.name}: ${JSON.stringify(got)} is not ${JSON.stringify(one.wanted)}`);
    }
  }
  if (!counts) return;
  one.ms.push((performance.now() - before) / runs);
  one.cpuMs.push((cpuBelow(process.pid) - cpuBefore) / runs);
}

/** CPU time, in ms, of the process, of all that it has waited for, and of those below it. */
function cpuBelow(pid: number): number {
  const all = new Map<number, { readonly parent: number; readonly ms: number }>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const fields = stat
        .slice(stat.lastIndexOf(")") + 2)
        .split(" ")
        .map(Number);
      const [, parent = 0] = fields;
      // A tick is 10 ms.
      const ms = 10 * fields.slice(11, 15).reduce((sum, one) => sum + one, 0);
      all.set(Number(name), { parent, ms });
    } catch {
      // It has ended meanwhile.
    }
  }
  const isBelow = (id: number): boolean =>
    id === pid || (all.has(id) && isBelow(all.get(id)?.parent ?? 0));
  return [...all].reduce((sum, [id, { ms }]) => (isBelow(id) ? sum + ms : sum), 0);
}

await runCommand("bench", main);
