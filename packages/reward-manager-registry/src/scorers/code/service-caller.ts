/**
 * Makes a program that calls one function of another program, because a sandbox service accepts
 * only programs. The function's result goes to standard output, as verl's wrapper writes it.
 */

import type { ProgramLanguage } from "../../sandbox/runtimes.ts";
import { pythonPrelude } from "../../sandbox/language/python-runner.ts";
import { callable } from "../../sandbox/language/javascript-runner.ts";

/** @param name an identifier */
export function callingProgram(language: ProgramLanguage, program: string, name: string): string {
  return language === "python" ? python(program, name) : javascript(program, name);
}

/**
 * The program is a text inside it, so that its imports from the future come first there. Arguments
 * are JSON, one per line.
 */
function python(program: string, name: string): string {
  return `import json, sys
${pythonPrelude}

names = {"__name__": "__main__"}
known_names(names)
exec(compile(${JSON.stringify(program)}, "program.py", "exec"), names)
args = [json.loads(line) for line in sys.stdin.read().split("\\n") if line.strip()]
value = function_of(names, "${name}")(*args)
if value is None or isinstance(value, (bool, dict, list, tuple)):
    print(json.dumps(value))
else:
    print(value)
`;
}

function javascript(program: string, name: string): string {
  return `${program}${callable(name)}
(async () => {
  const lines = process.getBuiltinModule("fs").readFileSync(0, "utf8").split("\\n");
  const args = lines.filter((line) => line.trim() !== "").map((line) => JSON.parse(line));
  const value = await globalThis[Symbol.for("rayling.callable")](...args);
  console.log(typeof value === "string" ? value : JSON.stringify(value ?? null));
})().catch((error) => { console.error(error); process.exit(1); });
`;
}
