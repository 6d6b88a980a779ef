/**
 * Flags for options of the reward loop: the loop's tables have their meaning, values and defaults.
 * The commands give their names and differences.
 */

import { InvalidArgumentError, Option as Flag } from "commander";
import type { Command } from "commander";
import {
  defaultWords,
  helpOf,
  isAllowed,
  loopOptions,
  optionAt,
  wordsOf,
} from "@rayling/reward-loop/options";
import type { Form } from "@rayling/reward-loop/options";

export interface LoopFlag {
  /** "--rpm <count>" */
  readonly flags: string;
  /** The option: "limits.requestsPerMinute". */
  readonly option: string;
  /** The command's default, in place of the loop's. */
  readonly value?: number;
  /** Whether 0 stands for none. */
  readonly orNone?: boolean;
  /** More help for this command, behind "; ". */
  readonly here?: string;
}

export function addLoopFlags(command: Command, flags: readonly LoopFlag[]): Command {
  for (const one of flags) command.addOption(flagOf(one, flags));
  return command;
}

/**
 * Returns the set flags as options of a loop, which checks them.
 *
 * @param given the flags of the command line
 */
export function loopOptionsOf(flags: readonly LoopFlag[], given: object): Record<string, unknown> {
  const options: Section = {};
  const sections: Map<string, Section> = new Map([["", options]]);
  for (const { flags: text, option, orNone } of flags) {
    const value: unknown = Reflect.get(given, new Flag(text).attributeName());
    if (value === undefined || value === false || (orNone === true && value === 0)) continue;
    const { parent, name } = placeOf(option);
    sectionAt(parent, sections)[name] = value;
  }
  return options;
}

type Section = Record<string, unknown>;

/** Returns the section at a path of dots, which is made with those around it. */
function sectionAt(path: string, sections: Map<string, Section>): Section {
  const known = sections.get(path);
  if (known !== undefined) return known;
  const made: Section = {};
  sections.set(path, made);
  const { parent, name } = placeOf(path);
  sectionAt(parent, sections)[name] = made;
  return made;
}

function placeOf(path: string): { readonly parent: string; readonly name: string } {
  const at = path.lastIndexOf(".");
  return { parent: path.slice(0, Math.max(at, 0)), name: path.slice(at + 1) };
}

function flagOf(
  { flags: text, option, value, orNone, here }: LoopFlag,
  all: readonly LoopFlag[],
): Flag {
  const entry = optionAt(loopOptions, option);
  const section = option.slice(0, option.lastIndexOf(".") + 1);
  const nameOf = (name: string): string | undefined =>
    all.find((one) => one.option === section + name)?.flags.split(" ")[0];
  const help = helpOf(entry, nameOf).replace(/\.$/, "");
  const extra = [
    ...(orNone === true ? ["0 for no limit"] : []),
    ...(here === undefined ? [] : [here]),
  ];
  const words = value === undefined && orNone !== true ? defaultWords(entry, nameOf) : undefined;
  const isSwitch = !text.includes("<");
  const flag = new Flag(
    text,
    `${[help.charAt(0).toLowerCase() + help.slice(1), ...extra].join("; ")}${words === undefined || isSwitch ? "" : ` (default: ${words})`}`,
  );
  if (isSwitch) return flag.default(false);
  flag.argParser((said: string) => valueOf(entry.kind, said, orNone === true));
  const standard = value ?? (orNone === true ? 0 : undefined);
  return standard === undefined ? flag : flag.default(standard);
}

function valueOf(given: Form, text: string, orNone: boolean): unknown {
  const isNumber = given.is === "number" || given.is === "auto";
  const value = isNumber && /^[+-]?(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : text;
  if ((orNone && value === 0) || isAllowed(given, value)) return value;
  throw new InvalidArgumentError(
    `It must be ${wordsOf(given)}${orNone ? ", or 0 for no limit" : ""}.`,
  );
}
