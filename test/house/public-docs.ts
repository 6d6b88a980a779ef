/** Exported names, and members of exported classes and interfaces, that an editor shows no text for. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

const root = fileURLToPath(new URL("../..", import.meta.url));

interface Node {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

export interface Undocumented {
  /** File with its line. */
  readonly place: string;
  readonly name: string;
}

/** @param entry a module, as a path from the root, whose re-exports are followed */
export function undocumented(entry: string, wanted?: ReadonlySet<string>): Undocumented[] {
  const text = readFileSync(join(root, entry), "utf8");
  const { program, comments } = parseSync(entry, text);
  const found: Undocumented[] = [];
  const isDocumented = (node: Node): boolean =>
    comments.some(
      ({ type, value, end }) =>
        type === "Block" &&
        value.startsWith("*") &&
        end <= node.start &&
        /^\s*$/.test(text.slice(end, node.start)),
    );
  const check = (node: Node, name: string): void => {
    if (isDocumented(node)) return;
    const line = text.slice(0, node.start).split("\n").length;
    found.push({ place: `${entry}:${line}`, name });
  };
  const overloads = new Set<string>();
  for (const statement of program.body as unknown as Node[]) {
    if (statement.type !== "ExportNamedDeclaration") continue;
    const source = statement["source"] as { readonly value: string } | null;
    if (source !== null) {
      if (!source.value.startsWith(".")) continue;
      const specifiers = statement["specifiers"] as { readonly local: { readonly name: string } }[];
      const names = specifiers.map(({ local }) => local.name);
      const inner = new Set(names.filter((name) => wanted === undefined || wanted.has(name)));
      const target = join(dirname(entry), source.value);
      if (inner.size > 0) found.push(...undocumented(target, inner));
      continue;
    }
    const declaration = statement["declaration"] as Node | null;
    const name = declaration === null ? undefined : nameOf(declaration);
    if (declaration === null || name === undefined || wanted?.has(name) === false) continue;
    // The text of one overload is the text of all.
    if (!overloads.has(name)) check(statement, name);
    if (declaration.type.includes("Function")) overloads.add(name);
    for (const [member, key] of membersOf(declaration)) {
      const overload = `${name}.${member["static"] === true ? "static " : ""}${key}`;
      if (!overloads.has(overload)) check(member, `${name}.${key}`);
      overloads.add(overload);
    }
  }
  return found;
}

function nameOf(declaration: Node): string | undefined {
  const declared = declaration["declarations"] as { readonly id: { readonly name: string } }[];
  const own = declaration["id"] as { readonly name: string } | undefined;
  return own?.name ?? declared?.[0]?.id.name;
}

/** Members with a name that users read; a constructor is described by its class. */
function* membersOf(declaration: Node): Iterable<readonly [Node, string]> {
  if (!/^(TSInterface|Class)Declaration$/.test(declaration.type)) return;
  const { body } = declaration["body"] as { readonly body: readonly Node[] };
  for (const member of body) {
    const key = member["key"] as { readonly type: string; readonly name?: string } | undefined;
    if (key?.type !== "Identifier" || key.name === undefined || key.name === "constructor")
      continue;
    if (member["accessibility"] !== "private" && member["override"] !== true) {
      yield [member, key.name];
    }
  }
}
