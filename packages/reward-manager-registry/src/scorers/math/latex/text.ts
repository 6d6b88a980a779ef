/**
 * Converts LaTeX to the plain text of pylatexenc 2.10 (`LatexNodes2Text().latex_to_text`), which
 * the graders of prm800k read: `\frac{1}{2}` is "1/2", `\sqrt{3}` "√(3)". An unknown command
 * disappears; the braces behind it are no argument of it, and their content stays.
 */

import { symbols } from "./commands.ts";
import { accented, inAlphabet, isAccent, isAlphabet } from "./letters.ts";
import { readLatex } from "./reader.ts";
import type { LatexNode } from "./reader.ts";

export interface LatexTextOptions {
  /** Whether to read common commands that pylatexenc does not know. Default false. */
  readonly lenient?: boolean;
}

/**
 * Returns the text; undefined if pylatexenc fails: required arguments are missing, or the nesting
 * is too deep. Undefined, too, for a text that would be spaces almost alone.
 */
export function latexToText(
  latex: string,
  { lenient = false }: LatexTextOptions = {},
): string | undefined {
  try {
    const spaces = { left: 10_000 + 20 * latex.length };
    return textOf(readLatex(latex), { isEquation: false, lenient, spaces });
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

type Command = Extract<LatexNode, { kind: "command" }>;
type Environment = Extract<LatexNode, { kind: "environment" }>;

interface Context {
  /** Whether spaces between commands are dropped, and those behind a command's name are kept. */
  readonly isEquation: boolean;
  readonly lenient: boolean;
  /**
   * The spaces that may yet be added, in the whole text: columns have the width of the widest cell,
   * and matrices and equations nest, so that a few letters could need more than there is memory.
   */
  readonly spaces: { left: number };
}

function textOf(nodes: readonly LatexNode[], context: Context): string {
  let text = "";
  let before: LatexNode | undefined;
  for (const node of nodes) {
    if (context.isEquation && node.kind === "characters" && before?.kind === "command") {
      if ((before.args ?? []).length === 0) text += before.gap;
    }
    text += nodeText(node, context);
    before = node;
  }
  return text;
}

function nodeText(node: LatexNode, context: Context): string {
  switch (node.kind) {
    case "characters":
      return context.isEquation && node.text.trim() === "" ? "" : node.text;
    case "group":
      return textOf(node.nodes, context);
    case "special":
      return specialTexts[node.text] ?? node.text;
    case "math":
      return equation(node.nodes, node.isDisplay, context);
    case "environment":
      return environmentText(node, context);
    default:
      return commandText(node, context);
  }
}

const specialTexts: Readonly<Record<string, string>> = {
  "~": "\u00A0",
  "&": "   ",
  "``": "“",
  "''": "”",
  "--": "–",
  "---": "—",
  "!`": "¡",
  "?`": "¿",
};

function equation(nodes: readonly LatexNode[], isDisplay: boolean, context: Context): string {
  const text = textOf(nodes, { ...context, isEquation: true }).trim();
  return isDisplay ? indented(text, context) : text;
}

function indented(text: string, context: Context): string {
  const lines = text.split("\n");
  return `\n${lines.map((line) => padding(4, context) + line).join("\n")}\n`;
}

/** @throws SyntaxError once there are too many */
function padding(count: number, context: Context): string {
  context.spaces.left -= count;
  if (context.spaces.left < 0) throw new SyntaxError("too many spaces");
  return " ".repeat(count);
}

const equations = new Set(
  ["equation", "eqnarray", "align", "multline", "gather", "dmath"].flatMap((name) => [
    name,
    `${name}*`,
  ]),
);
const matrices = new Set([
  "array",
  "pmatrix",
  "bmatrix",
  "smallmatrix",
  "psmallmatrix",
  "bsmallmatrix",
]);
const paragraphs = new Set(["center", "flushleft", "flushright"]);

function environmentText({ name, nodes }: Environment, context: Context): string {
  if (equations.has(name)) return equation(nodes, true, context);
  if (matrices.has(name)) return matrix(nodes, context);
  const text = textOf(nodes, context);
  return paragraphs.has(name) ? `\n${text}\n` : text;
}

/**
 * Writes `[ 1 2; 3 4 ]`, in columns of one width.
 *
 * @throws SyntaxError for an empty matrix, or one that is far larger than its cells
 */
function matrix(nodes: readonly LatexNode[], context: Context): string {
  const rows: string[][] = [[]];
  let cell: LatexNode[] = [];
  const endCell = (): void => {
    if (cell.length > 0) rows.at(-1)?.push(textOf(cell, context).trim());
    cell = [];
  };
  for (const node of nodes) {
    if (node.kind === "special" && node.text === "&") {
      endCell();
    } else if (node.kind === "command" && node.name === "\\") {
      endCell();
      rows.push([]);
    } else {
      cell.push(node);
    }
  }
  endCell();
  const widths = rows.flat().map(lengthOf);
  if (widths.length === 0) throw new SyntaxError("an empty matrix");
  const width = widths.reduce((most, one) => Math.max(most, one));
  const lines = rows.map((row) =>
    row.map((text) => padding(width - lengthOf(text), context) + text).join(" "),
  );
  return `[ ${lines.join("; ")} ]`;
}

function lengthOf(text: string): number {
  return Array.from(text).length;
}

function commandText(command: Command, context: Context): string {
  const { name, args } = command;
  const symbol = symbols.get(name) ?? (context.lenient ? unknownSymbols[name] : undefined);
  if (symbol !== undefined) return symbol;
  const argument = (index: number): string => {
    const arg = args?.[index];
    return arg === undefined || arg === null ? "" : contents(arg, context);
  };
  const format = formats.get(name);
  if (format !== undefined) {
    const texts = (args ?? []).map((_, index) => argument(index));
    return typeof format === "string" ? filled(format, texts) : named(format.argument, texts);
  }
  if (isAlphabet(name)) return inAlphabet(name, argument(0));
  if (isAccent(name)) return accented(args === undefined ? " " : argument(0).trim(), name);
  if (context.lenient && unknownTexts.has(name)) return argument(0);
  return articleText(command, argument, context);
}

/** Signs that pylatexenc drops. */
const unknownSymbols: Readonly<Record<string, string>> = {
  ne: "≠",
  lt: "<",
  gt: ">",
  land: "∧",
  lor: "∨",
  implies: "⟹",
  iff: "⟺",
};
/** Commands whose argument pylatexenc reads and drops. */
const unknownTexts: ReadonlySet<string> = new Set(["mbox", "texttt", "textsf", "textup", "textmd"]);

function contents(arg: LatexNode, context: Context): string {
  return arg.kind === "group" ? textOf(arg.nodes, context) : nodeText(arg, context);
}

/** A text with all arguments in turn, or the number of the one argument that stays. */
type Format = string | { readonly argument: number };

const formats: ReadonlyMap<string, Format> = new Map<string, Format>([
  ...["frac", "nicefrac", "textfrac"].map((name) => [name, "%s/%s"] as const),
  ...(
    "overline underline widehat widetilde wideparen overleftarrow overrightarrow overleftrightarrow underleftarrow underrightarrow underleftrightarrow " +
    "overbrace underbrace overgroup undergroup overbracket underbracket overlinesegment underlinesegment overleftharpoon overrightharpoon"
  )
    .split(" ")
    .map((name) => [name, "%s"] as const),
  ["ket", "|%s⟩"],
  ["bra", "⟨%s|"],
  ["braket", "⟨%s|%s⟩"],
  ["ketbra", "|%s⟩⟨%s|"],
  ["url", "<%s>"],
  ["hint", "Hint: %s"],
  ["hints", "Hints: %s"],
  ["hinweis", "Hinweis: %s"],
  ["hinweise", "Hinweise: %s"],
  ["textcolor", { argument: 2 }],
  ["colorbox", { argument: 2 }],
  ["fcolorbox", { argument: 4 }],
]);

/** Returns the format itself if the number of arguments differs, as Python's `%` fails there. */
function filled(format: string, texts: readonly string[]): string {
  const parts = format.split("%s");
  if (texts.length !== parts.length - 1) return format;
  return parts.map((part, index) => part + (texts[index] ?? "")).join("");
}

/**
 * Returns an argument by its number.
 *
 * @throws SyntaxError for a missing argument, with which Python's `%` fails in another way
 */
function named(index: number, texts: readonly string[]): string {
  const text = texts[index];
  if (text === undefined) throw new SyntaxError("an argument is missing");
  return text;
}

/** Commands of articles more than of answers. */
function articleText(
  { name, args }: Command,
  argument: (index: number) => string,
  context: Context,
): string {
  switch (name) {
    case "sqrt":
      return `√(${named(
        1,
        (args ?? []).map((_, index) => argument(index)),
      )})`;
    case "footnote":
      return `[${named(
        1,
        (args ?? []).map((_, index) => argument(index)),
      )}]`;
    case "mathrm":
    case "emph":
    case "text":
    case "textrm":
    case "textit":
    case "textbf":
    case "textsc":
    case "textsl":
      return argument(0);
    case "%":
      return "%";
    case "item":
      return `\n  ${argument(0) || "* "}`;
    case "chapter":
      return `\n\nCHAPTER: ${argument(2).toUpperCase()}\n`;
    case "part":
      return "\n\nPART: \n";
    case "section":
      return `\n\n§ ${argument(2).toUpperCase()}\n`;
    case "subsection":
      return `\n\n §.§ ${argument(2)}\n`;
    case "subsubsection":
      return `\n\n  §.§.§ ${argument(2)}\n`;
    case "paragraph":
      return "\n\n  \n";
    case "subparagraph":
      return `\n\n    ${argument(2)}\n`;
    case "includegraphics":
      return indented("< g r a p h i c s >", context);
    case "texorpdfstring":
    case "title":
    case "author":
    case "date":
    case "input":
    case "include":
      if (args === undefined) throw new SyntaxError("an argument is missing");
      return name === "texorpdfstring" ? argument(1) : "";
    case "href":
      // pylatexenc does not read its arguments, and then needs them.
      throw new SyntaxError("no argument");
    default:
      return "";
  }
}
