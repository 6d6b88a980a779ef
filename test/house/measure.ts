/**
 * What can be counted of how readable `packages/*\/src` is: rooms, functions, classes, parameters, assertions and comments, by the syntax tree.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";
import { undocumented } from "./public-docs.ts";
import { bannedWords, wordsOf } from "./words.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** How much is too much. */
export const limits = {
  filesInRoom: 12,
  functionLines: 60,
  classMembers: 30,
  parameters: 4,
  commentColumn: 100,
  readmeWords: 900,
  packageReadmeWords: 450,
} as const;

/** One place that is over a limit. */
export interface Finding {
  /** File with its line, or a folder. */
  readonly place: string;
  readonly what: string;
  readonly size: number;
}

export type Measure =
  | "files in a room"
  | "lines of a function"
  | "members of a class"
  | "parameters"
  | "type assertions"
  | "comments that begin in the middle"
  | "comment lines too wide"
  | "whoever"
  | "words of a README"
  | "banned words"
  | "hover docs";

export type Findings = Readonly<Record<Measure, readonly Finding[]>>;

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

interface Source {
  readonly path: string;
  readonly text: string;
  /** Of an offset, from 1. */
  readonly lineAt: (offset: number) => number;
}

/** All that is over a limit, the largest first. */
export function measure(): Findings {
  const paths = globSync("packages/*/src/**/*.ts", { cwd: root }).toSorted();
  const found: Record<Measure, Finding[]> = {
    "files in a room": crowdedRooms(paths),
    "lines of a function": [],
    "members of a class": [],
    parameters: [],
    "type assertions": [],
    "comments that begin in the middle": [],
    "comment lines too wide": [],
    whoever: [],
    "words of a README": longReadmes(),
    "banned words": paths.flatMap((path) => bannedIn(path, path)),
    "hover docs": globSync("packages/*/src/index.ts", { cwd: root })
      .flatMap((entry) => undocumented(entry))
      .map(({ place, name }) => ({ place, what: name, size: 1 })),
  };
  for (const path of paths) {
    const text = readFileSync(join(root, path), "utf8");
    const source = { path, text, lineAt: lineFinder(text) };
    const { program, comments } = parseSync(path, text);
    visit(program as unknown as Node, undefined, (node, parent) =>
      measureNode(source, node, parent, found),
    );
    for (const comment of comments) measureComment(source, comment, found);
  }
  for (const findings of Object.values(found)) findings.sort((a, b) => b.size - a.size);
  return found;
}

function crowdedRooms(paths: readonly string[]): Finding[] {
  const rooms = Map.groupBy(paths, (path) => dirname(path));
  return [...rooms]
    .filter(([, files]) => files.length > limits.filesInRoom)
    .map(([place, { length }]) => ({ place, what: "files", size: length }));
}

function longReadmes(): Finding[] {
  return globSync(["README.md", "packages/*/README.md"], { cwd: root }).flatMap((place) => {
    const size = readFileSync(join(root, place), "utf8").split(/\s+/).filter(Boolean).length;
    const most = place === "README.md" ? limits.readmeWords : limits.packageReadmeWords;
    return size <= most ? [] : [{ place, what: "words", size }];
  });
}

const functions: ReadonlySet<string> = new Set([
  "FunctionDeclaration",
  "FunctionExpression",
  "ArrowFunctionExpression",
]);

function measureNode(
  source: Source,
  node: Node,
  parent: Node | undefined,
  found: Record<Measure, Finding[]>,
): void {
  const note = (kind: Measure, what: string, size: number): void => {
    found[kind].push({ place: `${source.path}:${source.lineAt(node.start)}`, what, size });
  };
  if (functions.has(node.type)) {
    const lines = source.lineAt(node.end) - source.lineAt(node.start) + 1;
    if (lines > limits.functionLines) note("lines of a function", nameOf(node, parent), lines);
    const { length } = parametersOf(node);
    if (length > limits.parameters) note("parameters", nameOf(node, parent), length);
  } else if (node.type === "ClassDeclaration" || node.type === "ClassExpression") {
    const { body } = node["body"] as { readonly body: readonly Node[] };
    if (body.length > limits.classMembers) {
      note("members of a class", nameOf(node, parent), body.length);
    }
  } else if (node.type === "Identifier" || node.type === "PrivateIdentifier") {
    const place = `${source.path}:${source.lineAt(node.start)}`;
    found["banned words"].push(...bannedIn(String(node["name"]), place));
  } else if (node.type === "TSAsExpression" && !isConst(node["typeAnnotation"] as Node)) {
    note("type assertions", "as", 1);
  }
}

function parametersOf(node: Node): readonly unknown[] {
  const { params } = node as {
    readonly params?: readonly unknown[] | { items: readonly unknown[] };
  };
  if (params === undefined) return [];
  return "items" in params ? params.items : params;
}

/** `as const` asserts nothing. */
function isConst(type: Node): boolean {
  const name = type["typeName"] as { readonly name?: string } | undefined;
  return type.type === "TSTypeReference" && name?.name === "const";
}

/** A finding for each word of the name that is banned. */
function bannedIn(name: string, place: string): Finding[] {
  return wordsOf(name)
    .filter((word) => Object.hasOwn(bannedWords, word))
    .map((word) => ({ place, what: word, size: 1 }));
}

function nameOf(node: Node, parent: Node | undefined): string {
  const own = node["id"] ?? parent?.["key"] ?? parent?.["id"];
  return (own as { readonly name?: string } | null | undefined)?.name ?? "(unnamed)";
}

/** A comment stands alone: it has a subject. */
const middle = /^\W*(Of|Those|The same|What)\b/;

function measureComment(
  { path, text, lineAt }: Source,
  { value, start, end }: { readonly value: string; readonly start: number; readonly end: number },
  found: Record<Measure, Finding[]>,
): void {
  const place = `${path}:${lineAt(start)}`;
  const what = value.replaceAll(/\s+/g, " ").trim().slice(0, 60);
  if (middle.test(value)) found["comments that begin in the middle"].push({ place, what, size: 1 });
  if (/\bwhoever\b/i.test(value)) found.whoever.push({ place, what, size: 1 });
  const first = text.lastIndexOf("\n", start) + 1;
  const last = text.indexOf("\n", end);
  const lines = text.slice(first, last < 0 ? undefined : last).split("\n");
  const wide = lines.filter(({ length }) => length > limits.commentColumn).length;
  if (wide > 0) found["comment lines too wide"].push({ place, what, size: wide });
}

function visit(
  node: Node,
  parent: Node | undefined,
  each: (node: Node, parent: Node | undefined) => void,
): void {
  each(node, parent);
  for (const value of Object.values(node)) {
    for (const inside of Array.isArray(value) ? value : [value]) {
      if (isNode(inside)) visit(inside, node, each);
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

function lineFinder(text: string): (offset: number) => number {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middleIndex = (low + high) >> 1;
      if ((starts[middleIndex] ?? 0) <= offset) low = middleIndex;
      else high = middleIndex;
    }
    return low + 1;
  };
}
