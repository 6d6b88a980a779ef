// node examples/cookbook/search-early-stop.ts
//
// Several actors search, each gives what it has tried as a stream, and the first hit stops all of
// them.

import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import * as ray from "rayling";

interface Progress {
  readonly tried: number;
  readonly hit?: number;
}

const Searcher = ray.remote(
  class Searcher {
    /**
     * Looks for a number whose hash with the text begins with the zeros; the searchers take turns.
     */
    *search(text: string, zeros: string, first: number, step: number): Generator<Progress> {
      for (let from = first; ; from += 2_000 * step) {
        for (let at = 0; at < 2_000; at++) {
          const candidate = from + at * step;
          const hash = createHash("sha256").update(`${text}${candidate}`).digest("hex");
          if (hash.startsWith(zeros)) return yield { tried: at + 1, hit: candidate };
        }
        yield { tried: 2_000 };
      }
    }
  },
);

await ray.init();
const count = Math.max(2, Math.min(4, availableParallelism()));
let tried = 0;
let hit: number | undefined;

/** Follows one stream until somebody has a hit: leaving the loop ends the generator. */
async function follow(searcher: ReturnType<typeof Searcher.remote>, first: number): Promise<void> {
  // At most two pieces are tried ahead of what was looked at.
  const search = searcher.search.options({ generatorBackpressureNumObjects: 2 });
  for await (const ref of search.remote("rayling", "0000", first, count)) {
    const progress = await ray.get(ref);
    tried += progress.tried;
    hit ??= progress.hit;
    if (hit !== undefined) break;
  }
}

await Promise.all(Array.from({ length: count }, (_, first) => follow(Searcher.remote(), first)));
const digest = createHash("sha256").update(`rayling${hit}`).digest("hex");
console.log(`rayling${hit} has the hash ${digest.slice(0, 12)}…, after ${tried} attempts`);
await ray.shutdown();
