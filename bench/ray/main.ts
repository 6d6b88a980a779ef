/**
 * Question: how many times as fast as Ray is Rayling at the rows of Ray's own microbenchmark, on
 * this machine, in this run?
 *
 * Row by row, Ray first and then Rayling, so that a busy minute of the machine hits both. Without a
 * Python that has Ray it says what is missing and ends with 2. Ray's processes and files are gone
 * afterwards, also after Ctrl-C.
 */
import { writeFile } from "node:fs/promises";
import * as ray from "@rayling/core";
import {
  FlagError,
  type FlagValues,
  readFlags,
  runCommand,
  takes,
} from "../measure/command-line.ts";
import { freshWith } from "../measure/fresh.ts";
import { describeMachine, machineLines } from "../measure/machine.ts";
import { field, numbers } from "../measure/printed.ts";
import { type Rate, rateOf } from "../measure/rates.ts";
import { writeBlock } from "../measure/readme.ts";
import { markdownTables, type Table, terminalTables } from "../measure/report.ts";
import { measureRow, rateText } from "../ray-rows.ts";
import { fullPlans, quickPlans } from "../suites.ts";
import { targetTable } from "../targets.ts";
import { RayPeer } from "./peer.ts";
import { NoRayError, pythonWithRay, rayVersion } from "./python.ts";
import { type RayRow, rayRows, rowResources } from "./rows.ts";

const command = "pnpm bench:ray";

const usage = `${command} [flags]

Every row of Ray's microbenchmark with Ray ${rayVersion} and with Rayling, and the ratio: 8 minutes.

  --python PATH  an interpreter that has ray and numpy; without it one is made in out/
  --rows TEXT    only rows whose name contains it
  --quick        a short run: it works, but the figures mean little
  --json PATH    also write the figures there
  --markdown     write the table into bench/README.md
  --help         print this`;

const kinds = {
  python: takes.text,
  rows: takes.text,
  quick: takes.nothing,
  json: takes.text,
  markdown: takes.nothing,
  help: takes.nothing,
} as const;

/**
 * These rows are measured a second time in a process whose C library asks for huge pages, as
 * numpy does by itself for the arrays of Ray's side.
 */
const withHugePages: ReadonlySet<string> = new Set([
  "single client put gigabytes",
  "multi client put gigabytes",
]);
const hugePages = { GLIBC_TUNABLES: "glibc.malloc.hugetlb=1" } as const;
const oneRow = new URL("./one-row.ts", import.meta.url);

interface Pair {
  readonly row: Pick<RayRow, "name" | "unit">;
  readonly ray: Rate;
  readonly rayling: Rate;
}

async function main(args: readonly string[]): Promise<void> {
  const flags = readFlags(args, kinds);
  if (flags.help === true) return console.log(usage);
  const rows = rayRows.filter(({ name }) => name.includes(flags.rows ?? ""));
  if (rows.length === 0)
    throw new FlagError(`--rows: no row's name contains "${flags.rows ?? ""}"`);
  const python = await pythonWithRay(flags.python, say);
  const peer = await RayPeer.start(python);
  const pairs: Pair[] = [];
  try {
    await ray.init({ resources: rowResources });
    const plan = (flags.quick === true ? quickPlans : fullPlans).rates;
    for (const row of rows) {
      say(row.name);
      const theirs = await peer.measure(row.name, plan);
      pairs.push({ row, ray: theirs, rayling: await measureRow(row, plan) });
      if (!withHugePages.has(row.name)) continue;
      const printed = await freshWith(hugePages, oneRow, row.name, JSON.stringify(plan));
      const rate = rateOf(numbers(field(printed, "rounds")));
      const { name, unit } = row;
      pairs.push({ row: { name: `${name}, huge pages`, unit }, ray: theirs, rayling: rate });
    }
  } finally {
    await ray.shutdown();
    await peer.close();
  }
  await show(pairs, peer.versions, args, flags);
}

async function show(
  pairs: readonly Pair[],
  versions: Readonly<Record<string, string>>,
  args: readonly string[],
  flags: FlagValues<typeof kinds>,
): Promise<void> {
  const machine = describeMachine([command, ...args]);
  const others = Object.entries(versions).map((entry) => entry.join(" "));
  const lines = [...machineLines(machine), others.join(", ")];
  const measured = Object.fromEntries(
    pairs.map((pair) => [`${pair.row.name} x Ray`, pair.rayling.mean / pair.ray.mean]),
  );
  const targets = targetTable(measured);
  const tables = [tableOf(pairs), ...(targets === undefined ? [] : [targets])];
  if (flags.markdown === true) {
    const list = lines.map((line) => `- ${line}`).join("\n");
    await writeBlock(`${command} --markdown`, `${list}\n\n${markdownTables(tables)}`);
  } else {
    console.log(`${lines.join("\n")}\n\n${terminalTables(tables)}`);
  }
  if (flags.json !== undefined) {
    const figures = pairs.map(({ row: { name, unit }, ...rates }) => ({ name, unit, ...rates }));
    await writeFile(
      flags.json,
      `${JSON.stringify({ machine, versions, figures }, undefined, 2)}\n`,
    );
  }
}

function tableOf(pairs: readonly Pair[]): Table {
  const cells = ({ mean, sd }: Rate): readonly string[] => [rateText(mean), rateText(sd)];
  return {
    title: "Rows of Ray's microbenchmark, per second",
    rows: [
      ["", "of", "Ray", "sd", "Rayling", "sd", "x Ray"],
      ...pairs.map(({ row, ray: theirs, rayling }) => [
        row.name,
        row.unit,
        ...cells(theirs),
        ...cells(rayling),
        (rayling.mean / theirs.mean).toPrecision(3),
      ]),
    ],
  };
}

function say(text: string): void {
  console.error(`bench:ray: ${text}`);
}

await runCommand("bench:ray", main, (error) => error instanceof NoRayError);
