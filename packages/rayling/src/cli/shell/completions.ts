/**
 * The words that may stand next on a command line, by the commands, flags and choices of the
 * program. Knows no shell.
 */

import type { Argument, Command, Option } from "commander";

export interface Completion {
  readonly value: string;
  readonly description: string;
}

export interface Completions {
  readonly items: readonly Completion[];
  /** Whether the word may be a path. */
  readonly isPath: boolean;
}

/** A command line up to the word that is completed. */
interface Place {
  readonly command: Command;
  /** The number of its arguments so far. */
  readonly taken: number;
  /** The flag whose value comes next. */
  readonly flag: Option | undefined;
  /** Whether `--` has come: the rest are arguments. */
  readonly isRest: boolean;
}

/**
 * @param words all words behind the program's name; the last one, which may be empty, is completed
 */
export function completionsOf(program: Command, words: readonly string[]): Completions {
  const place = placeOf(program, words.slice(0, -1));
  const word = words.at(-1) ?? "";
  const { items, isPath } = possible(place, word);
  return { items: items.filter(({ value }) => value.startsWith(word)), isPath };
}

function placeOf(program: Command, words: readonly string[]): Place {
  let place: Place = { command: program, taken: 0, flag: undefined, isRest: false };
  for (const word of words) place = behind(place, word);
  return place;
}

function behind({ command, taken, flag, isRest }: Place, word: string): Place {
  const next = { command, taken, flag: undefined, isRest };
  if (flag !== undefined) return next;
  if (isRest) return { ...next, taken: taken + 1 };
  if (word === "--") return { ...next, isRest: true };
  if (word.startsWith("-")) {
    const named = command.options.find((one) => isCalled(one, word));
    return { ...next, flag: named?.required === true ? named : undefined };
  }
  const inner = taken === 0 ? command.commands.find((one) => one.name() === word) : undefined;
  return inner === undefined ? { ...next, taken: taken + 1 } : { ...next, command: inner };
}

function possible({ command, taken, flag, isRest }: Place, word: string): Completions {
  if (flag !== undefined) return valuesOf(flag);
  const help = command.createHelp();
  if (word.startsWith("-") && !isRest) {
    const flags = help.visibleOptions(command);
    const [, given = "", value] = /^(--[^=]+)(=?)/.exec(word) ?? [];
    const named = value === "=" ? flags.find((one) => isCalled(one, given)) : undefined;
    if (named !== undefined) {
      const { items, isPath } = valuesOf(named);
      return { items: items.map((one) => ({ ...one, value: `${given}=${one.value}` })), isPath };
    }
    const items = flags.map((one) => ({
      value: one.long ?? one.short ?? "",
      description: brief(one.description),
    }));
    return { items, isPath: false };
  }
  const commands = help.visibleCommands(command);
  if (taken === 0 && commands.length > 0) {
    const items = commands.map((one) => ({
      value: one.name(),
      description: brief(one.summary() || one.description()),
    }));
    return { items, isPath: false };
  }
  const declared = command.registeredArguments;
  const last = declared.at(-1);
  const argument = declared[taken] ?? (last?.variadic === true ? last : undefined);
  return argument === undefined ? { items: [], isPath: false } : valuesOf(argument);
}

function isCalled({ long, short }: Option, word: string): boolean {
  return word === long || word === short;
}

/** A value without choices may be a path: most are. */
function valuesOf({ argChoices }: Pick<Option | Argument, "argChoices">): Completions {
  const items = (argChoices ?? []).map((value) => ({ value, description: "" }));
  return { items, isPath: items.length === 0 };
}

const mostCharacters = 70;

function brief(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= mostCharacters ? line : `${line.slice(0, mostCharacters - 3).trimEnd()}...`;
}
