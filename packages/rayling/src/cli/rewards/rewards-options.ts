/** The flags of `rayling rewards`: their texts, defaults and checks. */
import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import type { ExportFormat } from "@rayling/reward-loop";
import { CliError } from "../cli-error.ts";
import { count, filePath, filePaths, number } from "../flag-values.ts";
import { addInputFlags, givenInputFlags, inputOf } from "../inputs/input-flags.ts";
import type { InputFlags } from "../inputs/input-flags.ts";
import type { InputOptions } from "../inputs/solutions.ts";
import { addCompareFlags, compareOptionsOf } from "../judges/compare-flags.ts";
import type { CompareFlags, CompareOptions } from "../judges/compare-flags.ts";
import { addFormatFlag } from "../output/formats.ts";
import type { Format, FormatFlag } from "../output/formats.ts";
import { readOptions } from "../score/read-options.ts";
import { addFunctionFlags } from "../score/score-options.ts";
import type { ScoreFlags, ScoreOptions } from "../score/score-options.ts";

export interface RewardsReportOptions {
  readonly log: string;
  readonly format: Format;
  /** The path of the page; undefined: there is none. */
  readonly html: string | undefined;
}

export interface RewardsExportOptions {
  readonly log: string;
  /** Undefined: beside the log. */
  readonly out: string | undefined;
  /** The form of the table; undefined: by the ending of `out`. */
  readonly as: ExportFormat | undefined;
  /** Whether every line is exported, or only valid ones. */
  readonly isAll: boolean;
  readonly format: Format;
}

export interface RewardsShowOptions {
  readonly log: string;
  /** The path of the texts; undefined: the log's input, if the log has none itself. */
  readonly input: string | undefined;
  readonly failed: boolean;
  readonly score: number | undefined;
  readonly above: number | undefined;
  readonly below: number | undefined;
  readonly limit: number;
  readonly format: Format;
}

export interface RewardsCompareOptions {
  /** The paths of the judges' logs. */
  readonly logs: readonly string[];
  /** The path of solutions with labels; undefined: the labels are those in the logs. */
  readonly labels: string | undefined;
  readonly input: InputOptions;
  readonly comparison: CompareOptions;
  readonly format: Format;
}

export interface RewardsViewOptions {
  /** The paths of one log or several. */
  readonly logs: readonly string[];
  /** Undefined: the first free one from 8266. */
  readonly port: number | undefined;
  readonly format: Format;
}

const tableFormats = ["parquet", "csv", "jsonl"] as const satisfies readonly ExportFormat[];

/** The functions that do the work; each loads when its command runs. */
export interface RewardsCommands {
  readonly report: (options: RewardsReportOptions) => Promise<void>;
  readonly show: (options: RewardsShowOptions) => Promise<void>;
  readonly view: (options: RewardsViewOptions) => Promise<void>;
  readonly compare: (options: RewardsCompareOptions) => Promise<void>;
  readonly exportLog: (options: RewardsExportOptions) => Promise<void>;
  readonly rescore: (options: ScoreOptions) => Promise<void>;
}

export function addRewardsCommand(
  program: Command,
  { report, show, view, compare, exportLog, rescore }: RewardsCommands,
): void {
  const rewards = program
    .command("rewards")
    .summary("report on, show, view, compare, export or rescore reward logs");
  addReportCommand(rewards, report);
  addShowCommand(rewards, show);
  addViewCommand(rewards, view);
  addCompareCommand(rewards, compare);
  addExportCommand(rewards, exportLog);
  addRescoreCommand(rewards, rescore);
}

function addReportCommand(rewards: Command, report: RewardsCommands["report"]): void {
  const command = rewards
    .command("report")
    .summary("counts, scores, failures, times and costs of a reward log")
    .description(
      "Reads a reward log (what `rayling score` writes). Of several lines for one sample the last valid one counts, else the last.",
    )
    .argument("<log>", "the file", filePath);
  addFormatFlag(command)
    .option("--html <path>", "writes a page with plots, too", filePath)
    .allowExcessArguments(false)
    .action(async (log: string, flags: { readonly format: Format; readonly html?: string }) => {
      await report({ log, format: flags.format, html: flags.html });
    });
}

function addExportCommand(rewards: Command, exportLog: RewardsCommands["exportLog"]): void {
  const command = rewards
    .command("export")
    .summary("a reward log as a table for other programs")
    .description(
      "Writes the valid outcome of each sample, with its parts, as a row: Parquet, CSV or JSON Lines.",
    )
    .argument("<log>", "the file", filePath)
    .addOption(
      new Option(
        "--as <form>",
        "form of the table (default: what --out ends with, .parquet, .csv or .jsonl; where it has no ending, parquet)",
      ).choices([...tableFormats]),
    )
    .option(
      "--out <path>",
      "where it is written; behind .csv and .jsonl .gz compresses it (default: beside the log, with .parquet for .jsonl)",
      filePath,
    )
    .option("--all-lines", "with all lines, including those that later ones replaced", false);
  addFormatFlag(command)
    .allowExcessArguments(false)
    .action(
      async (
        log: string,
        flags: FormatFlag & {
          readonly out?: string;
          readonly as?: ExportFormat;
          readonly allLines: boolean;
        },
      ) => {
        const { out, as, allLines: isAll, format } = flags;
        await exportLog({ log, out, as, isAll, format });
      },
    );
}

function addShowCommand(
  rewards: Command,
  show: (options: RewardsShowOptions) => Promise<void>,
): void {
  const command = rewards
    .command("show")
    .summary("samples with what was asked, answered and scored: `--score 0` shows the zeros")
    .description(
      "Shows the valid outcome of each sample, in the order of the log. Without --score, --above, --below and --failed it shows all.",
    )
    .argument("<log>", "the file", filePath)
    .argument(
      "[input]",
      "the solutions that it is of, where it was written with --no-texts",
      filePath,
    )
    .option("--score <number>", "samples with this score", number)
    .option("--above <number>", "samples with a higher score", number)
    .option("--below <number>", "samples with a lower score", number)
    .option("--failed", "samples without a score", false)
    .option("--limit <count>", "the most samples", count(1), 10);
  addFormatFlag(command)
    .allowExcessArguments(false)
    .action(
      async (
        log: string,
        input: string | undefined,
        flags: Omit<RewardsShowOptions, "log" | "input">,
      ) => {
        const { score, above, below } = flags;
        await show({ ...flags, log, input, score, above, below });
      },
    );
}

function addViewCommand(
  rewards: Command,
  view: (options: RewardsViewOptions) => Promise<void>,
): void {
  const command = rewards
    .command("view")
    .summary("a page with every sample in a browser: find, sort, compare, read")
    .description(
      "Serves a page of reward logs on this machine, also of logs that are being written, until Ctrl-C. With several logs the page shows two beside each other.",
    )
    .argument("<logs...>", "the files", filePaths)
    .option("--port <port>", "of the page (default: the first free one from 8266)", portNumber);
  addFormatFlag(command).action(
    async (logs: readonly string[], { port, format }: FormatFlag & { readonly port?: number }) => {
      await view({ logs, port, format });
    },
  );
}

function addCompareCommand(
  rewards: Command,
  compare: (options: RewardsCompareOptions) => Promise<void>,
): void {
  const command = rewards
    .command("compare")
    .summary("judges of the same samples: agreement, kappa, accuracy against labels")
    .description(
      "Compares logs of the same samples, each of a judge, with each other and with the labels that the logs have. One log is compared with its labels.",
    )
    .argument("<logs...>", "the files", filePaths)
    .option("--labels <path>", "solutions with labels, in place of those in the logs", filePath);
  addFormatFlag(addCompareFlags(addInputFlags(command))).action(
    async (logs: readonly string[], flags: RewardsCompareFlags) => {
      const { labels, format } = flags;
      const [flag] = givenInputFlags(flags);
      if (labels === undefined && flag !== undefined) {
        throw new CliError(2, `${flag} is of --labels: the logs have labels of their own.`);
      }
      const comparison = compareOptionsOf(flags);
      await compare({ logs, labels, input: inputOf(flags), comparison, format });
    },
  );
}

type RewardsCompareFlags = CompareFlags &
  InputFlags &
  Pick<RewardsCompareOptions, "format"> & { readonly labels?: string };

function portNumber(text: string): number {
  const port = count(0)(text);
  if (port <= 65_535) return port;
  throw new InvalidArgumentError("It must be a port, from 0 to 65535.");
}

/** Works like `rayling score --resume`, except that samples outside of the log stay unscored. */
function addRescoreCommand(
  rewards: Command,
  rescore: (options: ScoreOptions) => Promise<void>,
): void {
  const command = rewards
    .command("rescore")
    .summary("score samples of a reward log again: those that failed, or those of an old version")
    .description(
      "Reads the log and the solutions that it is of, scores some of its samples again, and appends the outcomes: the last valid line of a sample counts.",
    )
    .argument("<log>", "the file, which is appended to", filePath)
    .argument("[input]", "the file of --solutions")
    .addOption(
      new Option(
        "--only <which>",
        "failed: samples without a valid score; stale: these, and samples that another version of the functions scored",
      )
        .choices(["failed", "stale"])
        .default("failed"),
    );
  addFunctionFlags(command)
    .allowExcessArguments(false)
    .action(async (log: string, input: string | undefined, flags: RescoreFlags) => {
      const options = readOptions(input, { ...flags, demo: false, resume: true });
      await rescore({
        ...options,
        out: log,
        onlyRecorded: true,
        rescoreStale: flags.only === "stale",
      });
    });
}

type RescoreFlags = Omit<
  ScoreFlags,
  "demo" | "out" | "resume" | "rescoreStale" | "keepStale" | "replay" | "texts" | "baseline"
> & {
  readonly only: "failed" | "stale";
};
