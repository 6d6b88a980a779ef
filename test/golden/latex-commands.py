"""
Makes the tables of packages/reward-manager-registry/src/scorers/math/latex/commands.ts: which arguments pylatexenc 2.10 reads behind
a command, and the signs that commands without arguments stand for. What a command with arguments becomes is written in text.ts.

    python latex-commands.py > ../../packages/reward-manager-registry/src/scorers/math/latex/commands.ts
"""

import json
from collections import defaultdict

from pylatexenc import latex2text, latexwalker

# Its text is the day of the conversion; a course's own.
LEFT_OUT = ["today"]


def is_kept(name):
    return name not in LEFT_OUT and not name.startswith("Uebung")


def lines(words, width=140):
    line = ""
    for word in words:
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        yield line


def table(words):
    return "\n".join(f"  {json.dumps(line, ensure_ascii=False)}," for line in lines(words))


walker = latexwalker.get_default_latex_context_db()
texts = latex2text.get_default_latex_context_db()

by_arguments = defaultdict(list)
for spec in walker.iter_macro_specs():
    arguments = walker.get_macro_spec(spec.macroname).args_parser.argspec
    if arguments and is_kept(spec.macroname) and spec.macroname not in by_arguments[arguments]:
        by_arguments[arguments].append(spec.macroname)

symbols = {}
for spec in texts.iter_macro_specs():
    text = texts.get_macro_spec(spec.macroname).simplify_repl
    if isinstance(text, str) and text and ("%" not in text or len(text) == 1) and is_kept(spec.macroname):
        symbols[spec.macroname] = text
plain = {name: text for name, text in symbols.items() if not any(one.isspace() for one in name + text)}
spaced = {name: text for name, text in symbols.items() if name not in plain}

print("/** Made by test/golden/latex-commands.py of pylatexenc 2.10: which arguments a command has, and what a command without arguments stands for. */\n")
print("/** `*` an optional star, `[` an optional argument in brackets, `{` an argument; and the commands that have these. */")
print("const argumentLines: readonly string[] = [")
for arguments, names in by_arguments.items():
    print(table([arguments, *names]) if len(" ".join(names)) < 140 else "\n".join(table([arguments, *line.split(" ")]) for line in lines(names, 130)))
print("];\n")
print("export const argumentsOf: ReadonlyMap<string, string> = new Map(")
print("  argumentLines.flatMap((line) => {")
print('    const [written = "", ...names] = line.split(" ");')
print("    return names.map((name) => [name, written] as const);")
print("  }),\n);\n")
print("/** A command, and its sign. */")
print("const symbolLines: readonly string[] = [")
print(table([f"{name} {text}" for name, text in plain.items()]))
print("];\n")
print("const spaced: readonly (readonly [string, string])[] = [")
for name, text in spaced.items():
    print(f"  [{json.dumps(name, ensure_ascii=False)}, {json.dumps(text, ensure_ascii=False)}],")
print("];\n")
print("export const symbols: ReadonlyMap<string, string> = new Map([")
print("  ...symbolLines.flatMap((line) => pairs(line.split(\" \"))),")
print("  ...spaced,\n]);\n")
print("function pairs(words: readonly string[]): (readonly [string, string])[] {")
print("  return words.flatMap((word, index) =>")
print('    index % 2 === 0 ? [[word, words[index + 1] ?? ""] as const] : [],')
print("  );\n}")
