/**
 * Flags that all commands for a driver share.
 */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { DriverChoice } from "./driver/drivers.ts";
import { exitHelp } from "./exit-codes.ts";
import { count } from "./flag-values.ts";
import { type Format, formats } from "./output/formats.ts";

/** Longer than most methods hold a thread, shorter than people wait. */
const standardTimeoutMs = 5000;

export interface DriverFlags extends DriverChoice {
  /** Undefined: a table, unless the command has another default. */
  readonly format?: Format;
}

export interface AnswerFlags extends DriverFlags {
  readonly timeout: number;
}

/** The most rows of an answer; Ray's servers have this limit, too. */
export const maxRows = 10_000;

/** Adds a command for a driver. */
export function driverCommand(program: Command, name: string): Command {
  return program
    .command(name)
    .addOption(
      new Option(
        "--address <address>",
        "the driver: its job id, or the path of its control socket",
      ).env("RAYLING_ADDRESS"),
    )
    .option("--pid <pid>", "the driver: its process number", count(1))
    .addOption(
      new Option("--format <format>", "how the answer is printed (default: table)").choices(
        formats,
      ),
    )
    .allowExcessArguments(false)
    .addHelpText("after", choiceHelp);
}

/** Adds a command that asks the hosts of a driver. */
export function answerCommand(program: Command, name: string): Command {
  return driverCommand(program, name).option(
    "--timeout <ms>",
    "how long hosts have to answer; those that do not are named",
    count(1),
    standardTimeoutMs,
  );
}

type FilterFlag = readonly [key: string, predicate: "=" | "!=", value: string];

/** Accepts column names as Ray writes them, too: class_name. */
export function filter(text: string, others: readonly FilterFlag[]): readonly FilterFlag[] {
  const [, key, predicate, value] = /^(\w+)(!?=)(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) {
    throw new InvalidArgumentError("It must be key=value or key!=value.");
  }
  return [...others, [camelCase(key), predicate === "=" ? "=" : "!=", value]];
}

export function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

const choiceHelp = `
Without --address and --pid it is the one driver of this user that runs; where several do, they are listed.
${exitHelp} No driver is 1, several are 2.`;

/** Returns the time that a driver has whose hosts have `timeoutMs`. */
export function answerLimitMs(timeoutMs: number): number {
  return Math.min(timeoutMs + standardTimeoutMs, 2 ** 31 - 1);
}
