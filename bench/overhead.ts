/**
 * Question: what does it cost to be seen? CPU for an actor call and for a reward sample, with the
 * live page off and on (and followed), with OpenTelemetry off and on, and with both; beside another
 * checkout, such as the commit before there was either.
 *
 * Each way is a process with a session of its own that stays; rounds alternate, and their order
 * rotates. CPU is that of the process with all its threads. Ratios are of rounds that follow each
 * other. Spans are made and put in batches by the SDK, and sent nowhere.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { FlagError, readFlags, runCommand, takes, whole } from "./measure/command-line.ts";
import { percentile } from "./measure/interleave.ts";
import { medianInterval } from "./measure/interval.ts";
import { describeMachine, machineLines } from "./measure/machine.ts";
import { type Table, terminalTables } from "./measure/report.ts";
import type { Round } from "./overhead/contestant.ts";

const usage = `node bench/overhead.ts [flags]

What being seen costs: CPU for an actor call and for a reward sample, with the live page and
OpenTelemetry off and on, in rounds that alternate.

  --rounds N       of each way; default 30
  --calls N        of a round; default 20000, in thousands
  --samples N      of a round; default 5000, in thousands
  --before FOLDER  a checkout of another commit, installed, beside this one
  --json PATH      also write the figures there
  --help           print this`;

const kinds = {
  rounds: takes.text,
  calls: takes.text,
  samples: takes.text,
  before: takes.text,
  json: takes.text,
  help: takes.nothing,
} as const;

interface Way {
  readonly name: string;
  readonly hasPage?: boolean;
  readonly hasSpans?: boolean;
  readonly checkout?: string;
}

const ways: readonly Way[] = [
  { name: "off" },
  // How far two alike lie apart.
  { name: "off, once more" },
  { name: "page, followed", hasPage: true },
  { name: "OpenTelemetry", hasSpans: true },
  { name: "both", hasPage: true, hasSpans: true },
];

const subjects = ["calls", "samples"] as const;

/** CPU for one, in us, of each round. */
type Costs = Readonly<Record<Round["what"], readonly number[]>>;

async function main(args: readonly string[]): Promise<void> {
  const flags = readFlags(args, kinds);
  if (flags.help === true) return console.log(usage);
  const rounds = whole("--rounds", flags.rounds ?? "30");
  const counts = {
    calls: whole("--calls", flags.calls ?? "20000", 1000),
    samples: whole("--samples", flags.samples ?? "5000", 1000),
  };
  const all = [...ways, ...(flags.before === undefined ? [] : [otherCheckout(flags.before)])];
  const contestants: ChildProcess[] = [];
  for (const way of all) contestants.push(await start(way));
  const costs = await measure(contestants, rounds, counts);
  await Promise.all(contestants.map(end));
  const machine = describeMachine(["node bench/overhead.ts", ...args]);
  if (flags.json !== undefined) {
    const figures = all.map(({ name }, at) => ({ name, ...costs[at] }));
    await writeFile(flags.json, `${JSON.stringify({ machine, figures }, undefined, 2)}\n`);
  }
  const tables = subjects.map((what) => tableOf(what, rounds, counts[what], all, costs));
  console.log(`${machineLines(machine).join("\n")}\n\n${terminalTables(tables)}`);
}

/** @throws FlagError for a folder without the package */
function otherCheckout(folder: string): Way {
  const checkout = resolve(folder);
  if (existsSync(join(checkout, "packages/core/src/index.ts"))) return { name: "before", checkout };
  throw new FlagError(`--before takes the folder of a checkout, not "${folder}"`);
}

async function start({ hasPage, hasSpans, checkout }: Way): Promise<ChildProcess> {
  const path = fileURLToPath(new URL("overhead/contestant.ts", import.meta.url));
  const child = fork(path, hasPage === true ? ["--page"] : [], {
    env: {
      ...process.env,
      // Every way runs its sources, whatever the tests run.
      NODE_OPTIONS: "",
      ...(hasSpans === true ? { RAYLING_BENCH_SPANS: "1" } : {}),
      ...(checkout === undefined ? {} : { RAYLING_BENCH_CHECKOUT: checkout }),
    },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  await answerOf(child);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.disconnect();
  await exited;
}

/** Rejects when the process ends instead. */
async function answerOf(child: ChildProcess): Promise<number> {
  const waiting = new AbortController();
  const { signal } = waiting;
  const lost = once(child, "exit", { signal }).then(() => {
    throw new Error("a process that is measured has ended");
  });
  try {
    const [answer] = (await Promise.race([once(child, "message", { signal }), lost])) as [number];
    return answer;
  } finally {
    lost.catch(() => undefined);
    waiting.abort();
  }
}

async function measure(
  contestants: readonly ChildProcess[],
  rounds: number,
  counts: Readonly<Record<Round["what"], number>>,
): Promise<Costs[]> {
  const costs = contestants.map(() => ({ calls: Array<number>(), samples: Array<number>() }));
  // One more for each, which does not count.
  for (let round = 0; round <= rounds; round += 1) {
    for (const what of subjects) {
      for (let turn = 0; turn < contestants.length; turn += 1) {
        const at = (round + turn) % contestants.length;
        const contestant = contestants[at];
        if (contestant === undefined) continue;
        const asked: Round = { what, count: counts[what] };
        contestant.send(asked);
        const us = await answerOf(contestant);
        if (round > 0) costs[at]?.[what].push(us);
      }
    }
    if (process.stderr.isTTY) process.stderr.write(`\r\u001B[Kround ${round}`);
  }
  return costs;
}

function tableOf(
  what: Round["what"],
  rounds: number,
  count: number,
  all: readonly Way[],
  costs: readonly Costs[],
): Table {
  const off = costs[0]?.[what] ?? [];
  const one = what === "calls" ? "an actor call" : "a reward sample";
  return {
    title: `CPU for ${one}, us, ${rounds} rounds of ${count}`,
    rows: [
      ["", "median", "least", "x off", "95 % of it"],
      ...all.map(({ name }, at) => {
        const own = costs[at]?.[what] ?? [];
        const ratios = own.map((us, round) => us / (off[round] ?? us));
        const [low, high] = medianInterval(ratios);
        const sorted = own.toSorted((a, b) => a - b);
        const times = percentile(
          ratios.toSorted((a, b) => a - b),
          0.5,
        );
        return [
          name,
          percentile(sorted, 0.5).toFixed(2),
          percentile(sorted, 0).toFixed(2),
          times.toFixed(3),
          `${low.toFixed(3)} to ${high.toFixed(3)}`,
        ];
      }),
    ],
  };
}

await runCommand("bench", main);
