/** `rayling complete` in real shells on a terminal: what Tab makes of a command line. */

import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { describe, expect, test } from "vitest";
import { folder, inProcess, workspace } from "./command.ts";
import { sized } from "../../../test/fixtures/suite.ts";

const main = join(workspace, "packages/rayling/dist/cli/main.js");

function isThere(program: string): boolean {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const prompt = "READY> ";
/** The prompt in a command, which the terminal shows, too. */
const typedPrompt = `'REA''DY> '`;
/** How each shell starts without the user's files, and takes the script. */
const shells: Readonly<Record<string, { readonly command: string; readonly setUp: string }>> = {
  bash: {
    command: "bash --noprofile --norc -i",
    setUp: `eval "$(rayling complete bash)"; PS1=${typedPrompt}`,
  },
  zsh: {
    command: "zsh -f -i",
    setUp: `unset zle_bracketed_paste; autoload -U compinit; compinit -D -u; source <(rayling complete zsh); PS1=${typedPrompt}`,
  },
  fish: {
    command: "fish --no-config -i",
    setUp: `rayling complete fish | source; function fish_prompt; echo -n ${typedPrompt}; end`,
  },
};

interface Terminal {
  readonly child: ChildProcess;
  /** Types, and resolves with all that is shown up to a text. */
  readonly type: (text: string, until: RegExp) => Promise<string>;
}

/** A shell on a terminal of its own: util-linux's script makes one. */
function terminal(command: string, directory: string, bin: string): Terminal {
  const child = spawn("script", ["-qfec", command, "/dev/null"], {
    cwd: directory,
    env: {
      HOME: directory,
      PATH: [bin, process.env["PATH"]].join(delimiter),
      TERM: "dumb",
      LANG: "C.UTF-8",
      SHELL: "/bin/sh",
      HISTFILE: "/dev/null",
    },
  });
  let text = "";
  let isEnough = (): void => undefined;
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    isEnough();
  });
  return {
    child,
    type: (typed, until) =>
      new Promise((resolve) => {
        isEnough = () => {
          const match = until.exec(text);
          if (match === null) return;
          const before = text.slice(0, match.index + match[0].length);
          text = text.slice(before.length);
          resolve(before);
        };
        child.stdin.write(typed);
      }),
  };
}

describe.each(Object.entries(shells))("%s", (name, { command, setUp }) => {
  const isMissing = process.platform !== "linux" || !isThere("script") || !isThere(name);

  test.skipIf(isMissing)("completes commands, flags, values and files", async () => {
    const directory = await folder();
    const bin = join(directory, "bin");
    await mkdir(bin);
    await writeFile(join(directory, "solutions.jsonl"), "");
    // It completes as the command does, and says how it would be run.
    await writeFile(
      join(bin, "rayling"),
      `#!/bin/sh
if [ "$1" = complete ]; then exec "${process.execPath}" "${main}" "$@"; fi
printf 'ran'; printf ' <%s>' "$@"; echo .
`,
    );
    await chmod(join(bin, "rayling"), 0o755);
    const { child, type } = terminal(command, directory, bin);
    const ended = once(child, "close");
    try {
      await type(`${setUp}\n`, new RegExp(`${prompt}$`));
      const ran = async (line: string): Promise<string> => {
        const shown = await type(`${line}\n`, /ran (<.*>)\.\r?\n[^]*READY> $/);
        return /ran (<.*>)\./.exec(shown)?.[1] ?? "";
      };
      const typed = [
        ["rewards comp\t", "<rewards> <compare>"],
        ["score --repl\t log", "<score> <--replay> <log>"],
        ["score solu\t", "<score> <solutions.jsonl>"],
        ["sc\t", "<score>"],
        ["list pl\t", "<list> <placement-groups>"],
        ["list actors --format j\t", "<list> <actors> <--format> <json>"],
      ] as const;
      // Each Tab is a process; what it answers is below for all kinds.
      for (const [words, wanted] of sized({ gate: typed.slice(0, 3), full: [...typed] })) {
        expect(await ran(`rayling ${words}`)).toBe(wanted);
      }
      child.stdin?.write("exit\n");
      await ended;
    } finally {
      child.kill("SIGKILL");
    }
  });
});

test("a shell is named, and is one of those that there are", async () => {
  const none = await inProcess("complete");
  expect(none).toMatchObject({ code: 2, stdout: "" });
  expect(none.stderr).toContain("rayling: complete: name the shell, bash, zsh, fish, powershell");
  const other = await inProcess("complete", "csh");
  expect(other.code).toBe(2);
  expect(other.stderr).toMatch(/^rayling: command-argument value 'csh' is invalid/);
});

test.each<[string[], string[]]>([
  [["rew"], ["rewards\treport on, show, view, compare, export or rescore reward logs", ":4"]],
  [
    ["list", "actors", "--format", "y"],
    ["yaml\t", ":4"],
  ],
  [
    ["list", "actors", "--format=y"],
    ["--format=yaml\t", ":4"],
  ],
  [["score", "--reward", ""], [":0"]],
  [["rewards", "view", "a.jsonl", "b"], [":0"]],
  [["status", ""], [":4"]],
  [["run", "--", "--nod"], [":0"]],
])("behind %j stands %j", async (words, lines) => {
  const { code, stdout } = await inProcess("complete", "--", ...words);
  expect({ code, lines: stdout.trimEnd().split("\n") }).toEqual({ code: 0, lines });
});
