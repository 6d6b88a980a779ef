/**
 * Makes a program that uses another program, because a sandbox service accepts only programs: it
 * calls one function of that, or runs lines of a test behind it.
 *
 * Behind a line with a mark it writes the function's result as JSON, as the local sandbox does in a
 * channel of its own: both take the same functions for right, whatever else they print. verl's
 * wrapper prints the result, texts as they are. So a Decimal is right there for the number that it
 * shows, and here by a service.
 */

import type { ProgramLanguage } from "../../sandbox/runtimes.ts";
import { nameOfCalled, pythonPrelude } from "../../sandbox/language/python-runner.ts";
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

/** Lines of a test. */
export interface ServiceTest {
  readonly lines: string;
  /** Stands on a line of its own behind their output. */
  readonly mark: string;
}

/**
 * Returns a program that writes the mark if the program and then the lines have run. The main part
 * of a program of Python runs as in the local sandbox: where it ends, the lines still run.
 */
export function testedProgram(
  language: ProgramLanguage,
  program: string,
  { lines, mark }: ServiceTest,
): string {
  if (language === "javascript") {
    return `${program}\n\n${lines}\nprocess.stdout.write("\\n${mark}\\n")\n`;
  }
  return `${asModule(program, "__main__")}
run_for_lines(source, compile(source, "program.py", "exec"), names)
exec(compile(${JSON.stringify(lines)}, "test.py", "exec"), names)
sys.__stdout__.write("\\n${mark}\\n")
`;
}

/**
 * Python that has a program as the text `source`, so that its imports from the future come first
 * there, and the names of its module.
 */
function asModule(program: string, name: string): string {
  return `import json, linecache, sys, types
${pythonPrelude}

source = ${JSON.stringify(program)}
module = types.ModuleType("${name}")
module.__file__ = "program.py"
# Lines of the program are shown where it fails.
linecache.cache["program.py"] = (len(source), None, source.splitlines(True), "program.py")
sys.modules["__main__"] = sys.modules["${name}"] = module
names = module.__dict__
`;
}

/** Arguments are JSON, one per line, and read before the program could read them. */
function python(program: string, { name, mark }: ServiceCall): string {
  return `${asModule(program, nameOfCalled)}
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


def written(value):
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (str, int, float, list, tuple, dict, type(None))):
        text = str(value)
        try:
            json.loads(text)
            return text.replace("\\n", " ")
        except ValueError:
            pass
    return json.dumps(value, default=plain)


known_names(names)
args = arguments()
exec(compile(source, "program.py", "exec"), names)
value = written(function_of(names, "${name}")(*args))
sys.stdout.flush()
sys.__stdout__.write("\\n${mark}\\n" + value + "\\n")
`;
}

/**
 * A directive of the program still stands in front; imports do so by themselves. The program is no
 * main module, as in the local sandbox.
 */
function javascript(program: string, { name, mark }: ServiceCall): string {
  const own = program.replace(/^#!.*/, "").replace(/\bimport\.meta\.main\b/g, "false");
  const directive = /^\s*["']use strict["']/.test(own) ? '"use strict"; ' : "";
  const given = 'globalThis[Symbol.for("rayling.given")]';
  const reading = `${given} = process.getBuiltinModule("fs").readFileSync(0, "utf8");`;
  const called = 'if (typeof require === "function") require.main = undefined;';
  return `${directive}${reading} ${called} ${own}${callable(name)}
(async () => {
  const lines = ${given}.split("\\n");
  const args = lines.filter((line) => line.trim() !== "").map((line) => JSON.parse(line));
  const value = await globalThis[Symbol.for("rayling.callable")](...args);
  process.stdout.write("\\n${mark}\\n" + JSON.stringify(value ?? null) + "\\n");
})().catch((error) => { console.error(error); process.exit(1); });
`;
}
