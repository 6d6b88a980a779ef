/**
 * `rayling report`: the page and the traces of training runs, made again of their files. All paths
 * are checked before anything is written.
 */

import { stat } from "node:fs/promises";
import { TrackingError, writeReport, writeTrace } from "@rayling/trainer";
import { runFoldersOf, runInputsIn } from "@rayling/trainer/runs";
import { CliError, refusalOf } from "../../cli-error.ts";
import { replaceFile } from "../../output/existing-file.ts";
import { print } from "../../output/formats.ts";
import type { FormatFlag } from "../../output/formats.ts";
import { plain } from "../../output/output.ts";
import { isSameFile } from "../../output/same-file.ts";

export interface ReportFlags extends FormatFlag {
  readonly title?: string;
  readonly out?: string;
  readonly trace?: string | true;
}

/** Rejects with CliError 2. */
export async function runReport(
  [directory = "", ...beside]: readonly string[],
  { title, out, trace, format }: ReportFlags,
): Promise<void> {
  try {
    const runs = (await Promise.all([directory, ...beside].map(runFoldersOf))).flat();
    const traced = trace === undefined ? [] : runs;
    const tracePath = typeof trace === "string" ? trace : undefined;
    await refusePaths(runs, { out, trace: tracePath });
    const page = { directory, beside, ...(title === undefined ? {} : { title }) };
    const report =
      out === undefined
        ? await writeReport(page)
        : await written(out, "the page", (path) => writeReport({ ...page, path }));
    const traces: string[] = [];
    for (const run of traced) {
      const path =
        tracePath === undefined
          ? await writeTrace({ directory: run })
          : await written(tracePath, "the trace", (at) => writeTrace({ directory: run, path: at }));
      traces.push(path);
    }
    await print({ report, traces }, format, () => [
      `report  ${plain(report)}`,
      ...traces.map((path) => `trace   ${plain(path)}`),
    ]);
  } catch (error) {
    throw refusalOf(error, [TrackingError]);
  }
}

async function written(
  path: string,
  what: string,
  write: (path: string) => Promise<unknown>,
): Promise<string> {
  await replaceFile(path, what, write);
  return path;
}

interface Paths {
  readonly out: string | undefined;
  readonly trace: string | undefined;
}

async function refusePaths(runs: readonly string[], { out, trace }: Paths): Promise<void> {
  if (trace !== undefined) {
    const stats = await stat(trace).catch(() => undefined);
    if (stats?.isDirectory() === true) {
      throw new CliError(
        2,
        `--trace ${trace} is a folder: give the folders of runs before --trace`,
      );
    }
    if (runs.length > 1) {
      const problem = `is one file, and there are ${runs.length} runs`;
      throw new CliError(
        2,
        `--trace ${trace} ${problem}: leave it out, for a trace in each folder`,
      );
    }
    if (out !== undefined && (await isSameFile(out, trace))) {
      throw new CliError(2, `--trace ${trace} is the file of --out`);
    }
  }
  for (const [flag, path] of Object.entries({ "--out": out, "--trace": trace })) {
    for (const input of runs.flatMap(runInputsIn)) {
      if (path !== undefined && (await isSameFile(path, input))) {
        throw new CliError(2, `${flag} ${path} is a file of the run itself`);
      }
    }
  }
}
