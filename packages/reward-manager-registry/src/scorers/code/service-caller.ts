/**
 * Makes a program that calls one function of another program, because a sandbox service accepts
 * only programs. Behind a line with a mark it writes the function's result as JSON, as the local
 * sandbox does in a channel of its own: both take the same functions for right, whatever else they
 * print. verl's wrapper prints the result, texts as they are.
 */

import type { ProgramLanguage } from "../../sandbox/runtimes.ts";
import { pythonPrelude } from "../../sandbox/language/python-runner.ts";
import { callable } from "../../sandbox/language/javascript-runner.ts";

/** The function to be called. */
export interface ServiceCall {
  /** An identifier. */
  readonly name: string;
  /** Stands on a line of its own in front of the result. */
  readonly mark: string;
}

export function callingProgram(
  language: ProgramLanguage,
  program: string,
  call: ServiceCall,
): string {
  return language === "python" ? python(program, call) : javascript(program, call);
}

/**
 * The program is a text inside it, so that its imports from the future come first there. Arguments
 * are JSON, one per line, and read before the program could read them.
 */
function python(program: string, { name, mark }: ServiceCall): string {
  return `import json, sys
${pythonPrelude}

def arguments():
    args = [json.loads(line) for line in sys.stdin.read().split("\\n") if line.strip()]
    # JSON has no keys but texts; tests of one argument mean numbers where they can.
    if len(args) == 1 and isinstance(args[0], dict):
        try:
            return [{int(key): value for key, value in args[0].items()}]
        except ValueError:
            pass
    return args


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else str(value)


names = {"__name__": "__main__"}
known_names(names)
args = arguments()
exec(compile(${JSON.stringify(program)}, "program.py", "exec"), names)
value = json.dumps(function_of(names, "${name}")(*args), default=plain)
sys.stdout.flush()
sys.__stdout__.write("\\n${mark}\\n" + value + "\\n")
`;
}

/** A directive of the program still stands in front; imports do so by themselves. */
function javascript(program: string, { name, mark }: ServiceCall): string {
  const own = program.replace(/^#!.*/, "");
  const directive = /^\s*["']use strict["']/.test(own) ? '"use strict"; ' : "";
  const given = 'globalThis[Symbol.for("rayling.given")]';
  const reading = `${given} = process.getBuiltinModule("fs").readFileSync(0, "utf8");`;
  return `${directive}${reading} ${own}${callable(name)}
(async () => {
  const lines = ${given}.split("\\n");
  const args = lines.filter((line) => line.trim() !== "").map((line) => JSON.parse(line));
  const value = await globalThis[Symbol.for("rayling.callable")](...args);
  process.stdout.write("\\n${mark}\\n" + JSON.stringify(value ?? null) + "\\n");
})().catch((error) => { console.error(error); process.exit(1); });
`;
}
