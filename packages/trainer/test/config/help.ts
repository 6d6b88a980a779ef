/**
 * What the trainer's options mean stands once, in the comments above their entries: editors show
 * them where a program gives an option. Here they are read for what people look at elsewhere.
 */

import { readFileSync } from "node:fs";
import { z } from "zod";

const tables = ["algorithm", "data", "index", "policies", "run"];

/** Gives each entry the comment above it as its description. */
export async function readHelp(): Promise<void> {
  for (const name of tables) {
    const url = new URL(`../../src/config/options/${name}.ts`, import.meta.url);
    const exports = (await import(url.href)) as Readonly<Record<string, unknown>>;
    // By their indentation, which the formatter keeps: `export const trainer`, `  run: {`, `
    // seed: option(`.
    const path: string[] = [];
    let comment = "";
    const text = readFileSync(url, "utf8").replaceAll(/^ *\/\*\*[\s\S]*?\*\/$/gm, oneLine);
    for (const line of text.split("\n")) {
      const [, spaces, key] = /^( *)(?:export const )?(\w+)(?::| =) /.exec(line) ?? [];
      if (spaces !== undefined && key !== undefined) {
        path.splice(spaces.length / 2, Infinity, key);
        if (comment !== "" && line.includes(": option(")) describe(at(exports, path), comment);
      }
      comment = /^ *\/\*\* (.*) \*\/$/.exec(line)?.[1] ?? "";
    }
  }
}

function oneLine(comment: string): string {
  return comment.replaceAll(/\s*\n\s*(?:\*(?!\/) ?)?/g, " ");
}

function describe(entry: z.ZodType, description: string): void {
  z.globalRegistry.add(entry, { ...entry.meta(), description });
}

function at(exports: Readonly<Record<string, unknown>>, path: readonly string[]): z.ZodType {
  return path.reduce<unknown>((inside, key) => {
    const shape = inside instanceof z.ZodObject ? (inside.shape as object) : (inside as object);
    return (shape as Readonly<Record<string, unknown>>)[key];
  }, exports) as z.ZodType;
}
