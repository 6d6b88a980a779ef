/**
 * The programs in README and docs are programs: each block of TypeScript is type-checked, as a
 * module of its own beside the examples.
 *
 * What a block takes from elsewhere stands in a comment above it, which readers do not see:
 *
 *     <!-- given: declare const samples: Sample[]; -->
 */
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "./source.ts";

const pages = globSync(["*.md", "docs/**/*.md", "packages/*/*.md"], { cwd: root }).toSorted();

interface Block {
  readonly page: string;
  /** The line of its first line in the page, from 1. */
  readonly line: number;
  readonly given: string;
  readonly code: string;
}

const blocks: readonly Block[] = pages.flatMap(blocksOf);

function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), "utf8");
  const found = text.matchAll(/(?:<!-- given: ((?:(?!-->).)*) -->\n)?```ts\n(.*?)^```/gms);
  return [...found].map(({ index, 0: whole, 1: given = "", 2: code = "" }) => ({
    page,
    line: text.slice(0, index + whole.indexOf("```ts\n")).split("\n").length + 1,
    given,
    code,
  }));
}

let folder: string;
/** What the compiler says, by page. */
const problems = new Map<string, string[]>();

beforeAll(async () => {
  // Beside the examples, whose packages a reader has.
  folder = await mkdtemp(join(root, "examples", "documents-"));
  await mkdir(join(folder, "blocks"));
  await Promise.all(
    blocks.map(({ given, code }, index) => {
      // One line, so that the compiler's lines are those of the block.
      const module = `${given.replaceAll(/\s+/g, " ")} export {};\n${code}`;
      return writeFile(join(folder, "blocks", `${index}.ts`), module);
    }),
  );
  const config = {
    extends: "../../tsconfig.json",
    // A reader has its names for use below.
    compilerOptions: { noUnusedLocals: false },
    include: ["blocks"],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  const compiler = join(root, "node_modules", ".bin", "tsc");
  const { stdout } = await promisify(execFile)(compiler, ["-p", folder, "--pretty", "false"], {
    cwd: folder,
  }).catch((error: unknown) => error as { readonly stdout: string });
  for (const line of stdout.split("\n")) {
    const [, index, at, message] = /blocks\/(\d+)\.ts\((\d+),\d+\): (.*)/.exec(line) ?? [];
    const block = blocks[Number(index)];
    if (block === undefined) continue;
    const place = `${block.page}:${block.line + Number(at) - 2}: ${message}`;
    problems.set(block.page, [...(problems.get(block.page) ?? []), place]);
  }
});
afterAll(() => rm(folder, { recursive: true }));

test("there are blocks", () => {
  expect(blocks.length).toBeGreaterThan(30);
});

test.each([...new Set(blocks.map(({ page }) => page))])("the programs of %s are typed", (page) => {
  expect(problems.get(page) ?? []).toEqual([]);
});

/** In each worker the module stops at its first use of the API: what stands below is not there. */
test.each(pages)("the programs of %s have remote() above init", (page) => {
  const text = readFileSync(join(root, page), "utf8");
  const programs = text.match(/^```ts\n[^]*?^```|^(?: {4}.*\n|\n(?= {4}))+/gm) ?? [];
  const late = programs
    .map((program) =>
      program
        .split(/^\s*await (?:ray\.)?init\(/m)
        .slice(1)
        .join(""),
    )
    .flatMap((below) => below.match(/.*(?:ray\.|= )remote\(.*/g) ?? []);
  expect(late).toEqual([]);
});

/** The wheel of Python has the packages that its page imports. */
const ofTheWheel = "docs/verl.md";

test.each(pages.filter((page) => page !== ofTheWheel))(
  "%s says how the packages that its programs import are installed",
  (page) => {
    const imported = blocks
      .filter((block) => block.page === page)
      .flatMap(({ code }) => [...code.matchAll(/ from "(@rayling\/[\w-]+)/g)])
      .map(([, name]) => name);
    const text = readFileSync(join(root, page), "utf8");
    const installed = text.match(/npm install[^`\n]*/g)?.flatMap((line) => line.split(/\s+/)) ?? [];
    expect(installed).toEqual(expect.arrayContaining([...new Set(imported)]));
  },
);

/** It is made of the code. */
const generated = "docs/options.md";

test.each(pages.filter((page) => page.startsWith("docs/") && page !== generated))(
  "%s has its readers and an example at its top",
  (page) => {
    const top = readFileSync(join(root, page), "utf8").split("\n").slice(0, 25);
    expect(top[0]).toMatch(/^# /);
    expect(top[2]).toMatch(/^For (those|everybody|users) /);
    expect(top.some((line) => line.startsWith("```") || line.startsWith("    "))).toBe(true);
  },
);
