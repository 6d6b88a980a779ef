/** The source files of the workspace and what they import, for the tests that watch its structure. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root: string = fileURLToPath(new URL("../..", import.meta.url));

export interface SourceFile {
  /** Relative to the root, with slashes. */
  readonly path: string;
  readonly text: string;
  /** Specifiers of static and dynamic imports, types included. */
  readonly imports: readonly string[];
}

export function sourceFiles(...patterns: readonly string[]): SourceFile[] {
  return globSync([...patterns], {
    cwd: root,
    exclude: (name) => name === "node_modules" || name === "dist",
  })
    .toSorted()
    .map((path) => {
      const text = readFileSync(join(root, path), "utf8");
      const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/^\s*\/\/.*$/gm, "");
      const found = code.matchAll(/\b(?:from|import)\s*\(?\s*"([^"]+)"/g);
      return { path, text, imports: [...found].map((match) => match[1] as string) };
    });
}

/** The file that a relative import names, relative to the root. */
export function resolveImport(from: string, specifier: string): string {
  return relative(root, resolve(root, dirname(from), specifier));
}
