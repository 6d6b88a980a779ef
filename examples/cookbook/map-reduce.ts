// node examples/cookbook/map-reduce.ts
//
// Map-reduce by refs: each map task returns one part for each reducer, and the parts go to the
// reducers without coming by here.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as ray from "rayling";

const reducers = 3;

/** Counts the words of a file, split by the reducer that they belong to. */
const mapFile = ray.remote((path: string): Map<string, number>[] => {
  const parts = Array.from({ length: reducers }, () => new Map<string, number>());
  for (const [word] of readFileSync(path, "utf8")
    .toLowerCase()
    .matchAll(/\p{L}{5,}/gu)) {
    const part = parts[(word.codePointAt(0) ?? 0) % reducers]!;
    part.set(word, (part.get(word) ?? 0) + 1);
  }
  return parts;
});

/** Refs that are arguments by themselves arrive as their values. */
const reduce = ray.remote((...parts: Map<string, number>[]): Map<string, number> => {
  const sum = new Map<string, number>();
  for (const part of parts) {
    for (const [word, count] of part) sum.set(word, (sum.get(word) ?? 0) + count);
  }
  return sum;
});

const folder = process.argv[2] ?? "docs";
const files = readdirSync(folder).filter((name) => name.endsWith(".md"));
await ray.init();

// A list of refs for each file: one for each reducer.
const mapped = files.map((name) =>
  mapFile.options({ numReturns: reducers }).remote(join(folder, name)),
);
const reduced = Array.from({ length: reducers }, (_, index) =>
  reduce.remote(...mapped.map((parts) => parts[index]!)),
);

const words = (await ray.get(reduced)).flatMap((counts) => [...counts]);
const top = words.toSorted(([, a], [, b]) => b - a).slice(0, 5);
console.log(`${words.length} different words of five letters and more in ${files.length} files`);
for (const [word, count] of top) console.log(`${String(count).padStart(6)}  ${word}`);
await ray.shutdown();
