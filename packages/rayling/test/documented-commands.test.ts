/** Commands in README and docs are commands, with flags that they have. */

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inProcess, workspace } from "./command.ts";

interface Command {
  readonly place: string;
  /** `score`, or `rewards report`. */
  readonly name: string;
  readonly flags: readonly string[];
}

const pages = globSync(["*.md", "docs/*.md", "examples/**/*.ts", "packages/*/README.md"], {
  cwd: workspace,
  exclude: (path) => path.endsWith("node_modules"),
}).toSorted();

const groups: ReadonlySet<string> = new Set(["rewards", "data"]);

/** Lines that are indented as code, and what stands between backticks; behind `#` is what it does. */
function commandsOf(page: string): Command[] {
  const text = readFileSync(join(workspace, page), "utf8").replaceAll(/^```.*?^```/gms, "");
  const lines = [...text.matchAll(/^(?: {4}|\/\/ ).*$/gm)].map(([line]) => line);
  const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map((match) => match[1] ?? "");
  return [...lines, ...quoted].flatMap((line) => {
    const [, rest] = /(?:^|\s)rayling ((?:[a-z]+ ?)+.*)/.exec(line.replace(/\s#.*$/, "")) ?? [];
    if (rest === undefined) return [];
    const [first = "", second = ""] = rest.split(/\s+/);
    const isGroup = groups.has(first) && /^[a-z][a-z0-9-]+$/.test(second);
    return [
      {
        place: `${page}: ${line.trim()}`,
        name: isGroup ? `${first} ${second}` : first,
        flags: [...rest.matchAll(/(?<=\s)--[a-z][a-z-]*/g)].map(([flag]) => flag),
      },
    ];
  });
}

/** The commands of `rayling --help`. */
async function commandNames(): Promise<ReadonlySet<string>> {
  const { stdout } = await inProcess("--help");
  return new Set([...stdout.matchAll(/^ {2}([a-z]+) /gm)].map((match) => match[1] ?? ""));
}

const help = new Map<string, string>();
async function helpOf(name: string): Promise<string> {
  const known = help.get(name);
  if (known !== undefined) return known;
  const { stdout, stderr } = await inProcess(...name.split(" "), "--help");
  help.set(name, stdout + stderr);
  return stdout + stderr;
}

test("each is there, and has the flags", async () => {
  const names = await commandNames();
  expect(names.size).toBeGreaterThan(10);
  const commands = pages.flatMap(commandsOf).filter(({ name }) => names.has(name.split(" ")[0]!));
  expect(commands.length).toBeGreaterThan(60);
  const wrong: string[] = [];
  for (const { place, name, flags } of commands) {
    const text = await helpOf(name);
    if (!text.includes(`Usage: rayling ${name} `)) wrong.push(`${place}: no command ${name}`);
    for (const flag of flags) {
      if (!new RegExp(`${flag}\\b(?!-)`).test(text)) wrong.push(`${place}: no flag ${flag}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("scripts that are run by pnpm are there", () => {
  const { scripts } = JSON.parse(readFileSync(join(workspace, "package.json"), "utf8")) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const text = pages.map((page) => readFileSync(join(workspace, page), "utf8")).join("\n");
  const named = [...text.matchAll(/pnpm@12 ([a-z:]+)/g)].map((match) => match[1] ?? "");
  expect(named.length).toBeGreaterThan(8);
  const builtIn = ["install", "exec"];
  expect(named.filter((name) => !builtIn.includes(name) && !(name in scripts))).toEqual([]);
});
