/**
 * The command line as a function: it reads arguments, runs one command, and turns its end into one
 * line and an exit code. main.ts runs it as a process, and tests run it in their own.
 */

import type { WriteStream } from "node:tty";
import { Command, CommanderError } from "commander";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { addCertCommand } from "./node/cert-options.ts";
import { addDataCommand } from "./train/data-options.ts";
import { addDriverCommands } from "./driver/driver-commands.ts";
import { addNewCommand } from "./new/new-options.ts";
import { addNodeCommand } from "./node/node-options.ts";
import { ownFile } from "../own-files.ts";
import { firstErrorOf } from "./cli-error.ts";
import { exitCodeOf } from "./exit-codes.ts";
import { plain, tell as tellUser } from "./output/output.ts";
import { PhaseLine } from "./output/phase-line.ts";
import type { Silence } from "./output/silence/silence.ts";
import { introduce } from "./train/quickstart-introduction.ts";
import { addQuickstartCommand } from "./train/quickstart-options.ts";
import { addRunCommand } from "./train/run-options.ts";
import { addReportCommand } from "./train/report/report-options.ts";
import { addRewardsCommand, type RewardsCommands } from "./rewards/rewards-options.ts";
import { addScoreCommand } from "./score/add-score-command.ts";
import { addCompleteCommand, answerShell } from "./shell/complete-command.ts";
import { helpStyle } from "./shell/help-style.ts";
import { addServeCommand } from "./serve/serve-options.ts";
import { addTrainCommand } from "./train/train-options.ts";

const manifest = ownFile("package.json");

/** How a command line is run. */
export interface CommandLineOptions {
  /** Receives each error as one line. */
  readonly tell?: (line: string) => void;
  /** Says what goes on while this thread is busy. */
  readonly silence?: Silence;
}

/**
 * Runs one command.
 *
 * @param args the arguments behind `rayling`
 * @returns the exit code (exit-codes.ts); `rayling run` ends as its script does, with
 * process.exitCode
 */
export async function runCommandLine(
  args: readonly string[],
  { tell = tellUser, silence }: CommandLineOptions = {},
): Promise<number> {
  try {
    const program = await commands(tell, silence, args);
    const [first, second, ...words] = args;
    // The words may be anything: no parser takes them for its own.
    if (first === "complete" && second === "--") await answerShell(program, words);
    else await program.parseAsync(withHelpFlag(program, args), { from: "user" });
    return 0;
  } catch (thrown) {
    const error = firstErrorOf(thrown);
    if (!(error instanceof CommanderError)) {
      tell(oneLine(`${prefix}${messageOf(error)}`));
    }
    return exitCodeOf(error);
  }
}

/**
 * Returns `help a b` as `a b --help`: Commander's own command for help passes over a word that is
 * no command, and over all behind the first. Such words are left for it to refuse.
 */
function withHelpFlag(program: Command, args: readonly string[]): readonly string[] {
  const before = commandAt(program, args);
  const isForHelp = args[before.depth] === "help" && before.command.commands.length > 0;
  if (!isForHelp) return args;
  const words = args.slice(before.depth + 1).filter((word) => !/^(-h|--help)$/.test(word));
  const { command, depth } = commandAt(before.command, words);
  const unknown = words[depth];
  const path = [...args.slice(0, before.depth), ...words];
  if (unknown === undefined) return [...path, "--help"];
  if (command.commands.length > 0) return path.slice(0, before.depth + depth + 1);
  return command.error(`error: ${command.name()} has no command '${unknown}'`, { exitCode: 2 });
}

/** The command that the first words name, and how many words that are. */
function commandAt(
  program: Command,
  words: readonly string[],
): { readonly command: Command; readonly depth: number } {
  let command = program;
  for (const [depth, word] of words.entries()) {
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined) return { command, depth };
    command = next;
  }
  return { command, depth: words.length };
}

async function commands(
  tell: (line: string) => void,
  silence: Silence | undefined,
  args: readonly string[],
): Promise<Command> {
  const program = new Command("rayling")
    .description(
      "A small Ray for Node: scores model solutions with a reward loop of many workers, serves that loop over HTTP, trains policies on rewards, makes machines nodes of a driver, and shows what a running driver does.",
    )
    .version(await versionOf(manifest))
    .exitOverride()
    .configureHelp(helpStyle)
    .configureOutput({ outputError: (text) => tell(oneLine(withPrefix(text))) })
    .hook("preAction", () => silence?.doing(undefined));
  const begun: Begun = (doing, stream = process.stderr) => {
    const line = new PhaseLine(stream, silence);
    line.begin(doing);
    return line;
  };
  addScoring(program.commandsGroup("Score and judge:"), begun, args);
  addTraining(program.commandsGroup("Train:"), begun, args);
  addDriverCommands(program.commandsGroup("A running driver:"));
  addMachines(program.commandsGroup("Other machines:"));
  addCompleteCommand(program.commandsGroup("The shell:"));
  return program;
}

/** Says what a command does while its modules are loaded, and goes on with that. */
type Begun = (doing: string, stream?: WriteStream) => PhaseLine;

function addScoring(program: Command, begun: Begun, args: readonly string[]): void {
  addNewCommand(program, async (folder, format) => {
    const { runNew } = await import("./new/new-command.ts");
    await runNew(folder, { version: await versionOf(manifest), format });
  });
  addScoreCommand(program, {
    score: async (options, comparison) => {
      using line = begun(loadingLoop);
      const { runScore } = await import("./score/score-command.ts");
      await runScore(options, line, comparison, args);
    },
    compare: async (judges, comparison) => {
      using line = begun(loadingLoop);
      const { runJudges } = await import("./judges/judges-command.ts");
      await runJudges(judges, line, comparison);
    },
  });
  addRewardsCommand(program, {
    ...rewardsCommands,
    rescore: async (options) => {
      using line = begun(loadingLoop);
      const { runScore } = await import("./score/score-command.ts");
      await runScore(options, line);
    },
  });
  addServeCommand(program, async (options) => {
    const { runServe } = await import("./serve/serve-command.ts");
    await runServe(options, await versionOf(manifest));
  });
}

const loadingLoop = "loading the reward loop";
const loadingTrainer = "loading the trainer";

function addTraining(program: Command, begun: Begun, args: readonly string[]): void {
  addQuickstartCommand(program, async (flags) => {
    const stream = flags.format === "table" ? process.stdout : process.stderr;
    introduce(flags, stream);
    using line = begun(loadingTrainer, stream);
    const { runQuickstart } = await import("./train/quickstart-command.ts");
    await runQuickstart(flags, line);
  });
  addTrainCommand(program, async (options) => {
    using line = begun(loadingTrainer);
    const { runTrain } = await import("./train/train-command.ts");
    await runTrain(options, line, args);
  });
  addReportCommand(program);
  addDataCommand(program);
}

function addMachines(program: Command): void {
  addNodeCommand(program, async (options) => {
    const { runNode } = await import("./node/node-command.ts");
    await runNode(options);
  });
  addRunCommand(program, async (options) => {
    const { runScript } = await import("./train/run-command.ts");
    await runScript(options);
  });
  addCertCommand(program, async (options) => {
    const { runCert } = await import("./node/cert-command.ts");
    await runCert(options);
  });
}

const rewardsCommands: Omit<RewardsCommands, "rescore"> = {
  report: async (options) => {
    const { runRewardsReport } = await import("./rewards/rewards-command.ts");
    await runRewardsReport(options);
  },
  show: async (options) => {
    const { runRewardsShow } = await import("./rewards/rewards-show.ts");
    await runRewardsShow(options);
  },
  view: async (options) => {
    const { runRewardsView } = await import("./rewards/rewards-view.ts");
    await runRewardsView(options);
  },
  compare: async (options) => {
    const { runRewardsCompare } = await import("./judges/compare-command.ts");
    await runRewardsCompare(options);
  },
  exportLog: async (options) => {
    const { runRewardsExport } = await import("./rewards/rewards-export.ts");
    await runRewardsExport(options);
  },
};

async function versionOf(url: URL): Promise<string> {
  const { default: content }: { readonly default: Readonly<Record<string, unknown>> } =
    await import(url.href, { with: { type: "json" } });
  return String(content["version"]);
}

/** The start of every error. */
const prefix = "rayling: ";

/** Commander has a start of its own. */
function withPrefix(text: string): string {
  return text.replace(/^error: /, prefix);
}

function oneLine(text: string): string {
  return `${plain(text.trim())}\n`;
}
