// node examples/actors/streaming.ts
//
// A generator method gives its items while it makes them. The consumer decides how far ahead it may
// run, when it stops, and what a failure means.

import * as ray from "rayling";

const Crawler = ray.remote(
  class Crawler {
    #made = 0;
    /** Anything that can be iterated over will do: generators, async generators. */
    async *pages(site: string, count: number): AsyncGenerator<{ url: string; words: number }> {
      for (let page = 1; page <= count; page++) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        this.#made += 1;
        yield { url: `${site}/${page}`, words: page * 100 };
      }
    }
    async *broken(site: string): AsyncGenerator<string> {
      yield `${site}/1`;
      yield `${site}/2`;
      throw new RangeError(`${site} has no third page`);
    }
    async made(): Promise<number> {
      return this.#made;
    }
  },
);

await ray.init();
const crawler = Crawler.remote();

// Each item is a ref, given out when its value is there: pass it on, or get it.
let words = 0;
for await (const ref of crawler.pages.remote("a.example", 5)) words += (await ray.get(ref)).words;
console.log(`a.example: ${words} words on 5 pages`);

// With back-pressure the producer waits for you. It is never more than this many items ahead,
// whatever it could do.
const limited = crawler.pages
  .options({ generatorBackpressureNumObjects: 2 })
  .remote("b.example", 1000);
const before = await ray.get(crawler.made.remote());
for (let taken = 0; taken < 3; taken++) await limited.next();
console.log(`b.example: took 3, made ${(await ray.get(crawler.made.remote())) - before} of 1000`);

// Enough: cancel ends the method itself; its `finally` runs, and the actor is free for others.
ray.cancel(limited);
const completed = await ray.get(limited.completed()).catch((error: Error) => error.name);
console.log(`b.example: ${String(completed)}`);

// A failure is one more ref. What came before it is yours.
for await (const ref of crawler.broken.remote("c.example")) {
  console.log(await ray.get(ref).catch((error: Error) => `${error.name}: ${error.message}`));
}

// Several streams and plain refs in one wait: the one that has something next is ready.
let open = ["d.example", "e.example"].map((site) => crawler.pages.remote(site, 3));
const seen: string[] = [];
while (open.length > 0) {
  const { ready, pending } = await ray.wait(open);
  const still = await Promise.all(
    ready.map(async (stream) => {
      const { value } = await stream.next();
      if (value !== undefined) seen.push((await ray.get(value)).url);
      return stream.isFinished() ? [] : [stream];
    }),
  );
  open = [...pending, ...still.flat()];
}
console.log(`two at once: ${seen.length} pages`, seen.toSorted().join(" "));

await ray.shutdown();
