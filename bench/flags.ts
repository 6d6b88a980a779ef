/** The command line of the benchmark: what it may say, and one clear line for what it may not. */
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Suite, suites } from "./suites.ts";

export interface Flags {
  readonly help: boolean;
  readonly quick: boolean;
  readonly markdown: boolean;
  readonly json: string | undefined;
  readonly only: Suite | undefined;
  /** Goes with the suite of rewards. */
  readonly python: string | undefined;
}

export const usage: string = `node bench/main.ts [flags]

What does one actor call cost, one at a time and with 64 and 1,000 in flight, against a bare
MessagePort, a bare socket and the libraries that do the same? A big value, against memcpy? And a
million calls at once? Every suite runs in a process of its own, unless one is named.

  --quick        a short run: it works, but the figures mean little
  --only SUITE   ${suites.join(" | ")}
  --python PATH  with --only rewards: verl's own reward loop beside ours, under an interpreter that
                 has ray, torch and verl
  --json PATH    also write the figures there
  --markdown     write the tables into bench/README.md; with --only, print them as Markdown
  --help         print this`;

export class FlagError extends Error {
  readonly code = "BAD_FLAG";
}

/** @throws FlagError */
export function readFlags(args: readonly string[]): Flags {
  const { help, quick, markdown, json, only, python } = parse(args);
  if (only !== undefined && !(suites as readonly string[]).includes(only)) {
    throw new FlagError(`--only takes ${suites.join(", ")}, not "${only}"`);
  }
  if (json !== undefined && !isFolder(dirname(resolve(json)))) {
    throw new FlagError(`--json: the folder of "${json}" does not exist`);
  }
  if (python !== undefined && only !== "rewards") {
    throw new FlagError("--python goes with --only rewards");
  }
  return {
    help: help ?? false,
    quick: quick ?? false,
    markdown: markdown ?? false,
    json,
    only: only as Suite | undefined,
    python,
  };
}

interface Parsed {
  readonly help?: boolean;
  readonly quick?: boolean;
  readonly markdown?: boolean;
  readonly json?: string;
  readonly only?: string;
  readonly python?: string;
}

function parse(args: readonly string[]): Parsed {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: "boolean" },
        quick: { type: "boolean" },
        markdown: { type: "boolean" },
        json: { type: "string" },
        only: { type: "string" },
        python: { type: "string" },
      },
    }).values;
  } catch (error) {
    throw new FlagError((error as Error).message.split("\n")[0] ?? "bad flag", { cause: error });
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
