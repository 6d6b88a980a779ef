/** The command line of the main benchmark. */
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { FlagError, readFlags, takes } from "./measure/command-line.ts";
import { type Suite, suites } from "./suites.ts";

export interface Flags {
  readonly help: boolean;
  readonly quick: boolean;
  readonly markdown: boolean;
  readonly json: string | undefined;
  readonly only: Suite | undefined;
  /** Goes with the suites of rewards and of serve. */
  readonly python: string | undefined;
}

export const usage: string = `node bench/main.ts [flags]

What does one actor call cost, one at a time and with 64 and 1,000 in flight, against a bare
MessagePort, a bare socket and the libraries that do the same? A big value, against memcpy? And a
million calls at once? Every suite runs in a process of its own, unless one is named.

  --quick        a short run: it works, but the figures mean little
  --only SUITE   ${suites.join(" | ")}
  --python PATH  with --only rewards: verl's own reward loop beside ours, under an interpreter that
                 has ray, torch and verl; with --only serve: FastAPI beside ours, under one that has
                 fastapi and uvicorn
  --json PATH    also write the figures there
  --markdown     write the tables into bench/README.md; with --only, print them as Markdown
  --help         print this`;

/** @throws FlagError */
export function flagsOf(args: readonly string[]): Flags {
  const { help, quick, markdown, json, only, python } = readFlags(args, {
    help: takes.nothing,
    quick: takes.nothing,
    markdown: takes.nothing,
    json: takes.text,
    only: takes.text,
    python: takes.text,
  });
  const suite = suites.find((one) => one === only);
  if (suite !== only) {
    throw new FlagError(`--only takes ${suites.join(", ")}, not "${only}"`);
  }
  if (json !== undefined && !isFolder(dirname(resolve(json)))) {
    throw new FlagError(`--json: the folder of "${json}" does not exist`);
  }
  if (python !== undefined && only !== "rewards" && only !== "serve") {
    throw new FlagError("--python goes with --only rewards or --only serve");
  }
  return {
    help: help ?? false,
    quick: quick ?? false,
    markdown: markdown ?? false,
    json,
    only: suite,
    python,
  };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
