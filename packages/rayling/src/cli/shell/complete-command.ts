/**
 * `rayling complete`: prints a script that makes a shell complete commands, flags and their values,
 * and answers that script. The scripts are a library's, which loads for them only.
 */

import { Argument } from "commander";
import type { Command } from "commander";
import { CliError } from "../cli-error.ts";
import { sayData } from "../output/output.ts";
import { completionsOf } from "./completions.ts";

const shells = ["bash", "zsh", "fish", "powershell"] as const;

/** @param program has all other commands */
export function addCompleteCommand(program: Command): void {
  program
    .command("complete")
    .summary("print a script for the shell, which then completes commands and flags")
    .description(
      "Prints a script that makes a shell complete commands, flags and their values. The script calls the command again, with the words so far behind --.",
    )
    .addArgument(new Argument("[shell]", "the shell").choices(shells))
    .addHelpText("after", help)
    .allowExcessArguments(false)
    .action(async (shell: string | undefined) => {
      if (shell === undefined) {
        throw new CliError(2, `complete: name the shell, ${shells.join(", ")}.`);
      }
      await printScript(shell, program.name());
    });
}

/**
 * Answers the script of a shell: a line for each completion, and the directive that it knows.
 *
 * @param words behind the program's name; the last one is completed
 */
export async function answerShell(program: Command, words: readonly string[]): Promise<void> {
  const { items, isPath } = completionsOf(program, words);
  const lines = items.map(({ value, description }) => `${value}\t${description}`);
  await sayData([...lines, `:${isPath ? directive.files : directive.noFiles}`, ""].join("\n"));
}

/** The numbers are those of the library, and of cobra's scripts, on which it stands. */
const directive = { files: 0, noFiles: 4 } as const;

async function printScript(shell: string, name: string): Promise<void> {
  const { script } = await import("@bomb.sh/tab");
  if (shell === "bash") await sayData(withoutBashCompletion);
  // It prints the script.
  script(shell, name, name);
  if (shell === "bash") await sayData(withFiles(name));
}

/** The library's script needs one function of the package bash-completion. */
const withoutBashCompletion = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        words=("\${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=\${COMP_WORDS[COMP_CWORD]}
        prev=\${COMP_WORDS[COMP_CWORD-1]}
    }
fi
`;

/** The library registers its function without files as the default. */
function withFiles(name: string): string {
  return `complete -o default -F __${name}_complete ${name}\n`;
}

const help = `
Examples:
  eval "$(rayling complete bash)"                                  # in ~/.bashrc
  source <(rayling complete zsh)                                   # in ~/.zshrc, behind compinit
  rayling complete fish > ~/.config/fish/completions/rayling.fish`;
