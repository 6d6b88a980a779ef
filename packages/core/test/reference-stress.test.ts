import { afterAll, beforeAll, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { seededRandom } from "../../../test/servers/seeded.ts";
import { sized } from "../../../test/fixtures/suite.ts";
import { currentCaller } from "./fixtures/runtime.ts";
import { type Content, Holder, readAll } from "./fixtures/holder.ts";

beforeAll(() => ray.init({ numCpus: 4, prewarm: 0 }));
afterAll(() => ray.shutdown());

/** Numbers below a bound. */
function generator(seed: number): (bound: number) => number {
  const random = seededRandom(seed);
  return (bound) => Math.floor(random() * bound);
}

/** What an object is, as the model knows it: its text and what is inside. */
type Model = readonly [text: string, ...inside: Model[]];

/** The driver's own places. */
class Places {
  readonly #refs: Map<number, ray.ObjectRef<Content>> = new Map();
  set(place: number, ref: ray.ObjectRef<Content>): void {
    this.#refs.set(place, ref);
  }
  get(place: number): ray.ObjectRef<Content> {
    return this.#refs.get(place) as ray.ObjectRef<Content>;
  }
  delete(place: number): void {
    this.#refs.delete(place);
  }
}

const places = 12;

type Case = readonly [seed: number, isolation: ray.Isolation];
const cases = sized<readonly Case[]>({
  gate: [
    [1, "thread"],
    [3, "process"],
  ],
  full: [
    [1, "thread"],
    [2, "thread"],
    [3, "process"],
    [4, "process"],
  ],
});
const steps = sized({ gate: 150, full: 250 });

test.each(cases)(
  "what is made, nested, handed on and dropped at random is there as long as it is held, and not longer (seed %i, %s)",
  async (seed, isolation) => {
    const random = generator(seed);
    const Isolated = Holder.options({ isolation });
    const actors = [Isolated.remote(), Isolated.remote(), Isolated.remote()];
    const own = new Places();
    /** By holder (the driver is the last one), what is kept where. */
    const model = Array.from({ length: actors.length + 1 }, () => new Map<number, Model>());
    const driver = actors.length;
    let texts = 0;

    const someKept = (holder: number): [number, Model] | undefined => {
      const kept = [...(model[holder] as Map<number, Model>)];
      return kept[random(kept.length)];
    };
    const at = (holder: number) => actors[holder] as (typeof actors)[number];

    async function step(): Promise<void> {
      const holder = random(model.length);
      const place = random(places);
      const text = `${seed}.${texts++}`;
      const kept = model[holder] as Map<number, Model>;
      switch (random(8)) {
        case 0: {
          const size = random(4) === 0 ? 100_000 : 0;
          const content = text.padEnd(size, ".");
          if (holder === driver) own.set(place, ray.put({ text: content, inside: [] }));
          else await ray.get(at(holder).put.remote(place, text, size));
          kept.set(place, [content]);
          return;
        }
        case 1: {
          const inside = [someKept(holder), someKept(holder)].filter((one) => one !== undefined);
          const insidePlaces = inside.map(([one]) => one);
          if (holder === driver) {
            own.set(place, ray.put({ text, inside: insidePlaces.map((one) => own.get(one)) }));
          } else {
            await ray.get(at(holder).nest.remote(place, text, insidePlaces));
          }
          kept.set(place, [text, ...inside.map(([, one]) => one)]);
          return;
        }
        case 2: {
          // The result of a call, with refs of the actor inside: the driver owns it. A big one of a process stays there.
          if (holder === driver) return;
          const content = text.padEnd(random(2) === 0 ? 150_000 : 0, ".");
          const inside = [someKept(holder)].filter((one) => one !== undefined);
          own.set(
            place,
            at(holder).made.remote(
              content,
              inside.map(([one]) => one),
            ),
          );
          (model[driver] as Map<number, Model>).set(place, [
            content,
            ...inside.map(([, one]) => one),
          ]);
          return;
        }
        case 3:
        case 4: {
          const found = someKept(holder);
          if (found === undefined) return;
          const [from, content] = found;
          const to = random(model.length);
          const given =
            holder === driver
              ? { ref: own.get(from) }
              : await ray.get(at(holder).give.remote(from));
          if (to === driver) own.set(place, given.ref);
          // Not waited for: what comes later must find it all the same.
          else void at(to).keep.remote(place, given);
          (model[to] as Map<number, Model>).set(place, content);
          return;
        }
        case 5: {
          const found = someKept(holder);
          if (found === undefined) return;
          if (holder === driver) own.delete(found[0]);
          else void at(holder).drop.remote(found[0]);
          kept.delete(found[0]);
          return;
        }
        case 6: {
          const found = someKept(holder);
          if (found === undefined) return;
          const read =
            holder === driver
              ? readAll(own.get(found[0]))
              : ray.get(at(holder).read.remote(found[0]));
          expect(await read).toEqual(found[1]);
          return;
        }
        default: {
          const found = someKept(driver);
          if (found === undefined) return;
          const to = random(actors.length);
          expect(await ray.get(at(to).readArgument.remote(own.get(found[0])))).toEqual(found[1]);
          if (random(4) === 0) await ray.get(at(to).collect.remote());
          if (random(4) === 0) globalThis.gc?.();
        }
      }
    }

    for (let count = 0; count < steps; count++) await step();
    for (const [holder, kept] of model.entries()) {
      for (const [place, content] of kept) {
        const read =
          holder === driver ? readAll(own.get(place)) : ray.get(at(holder).read.remote(place));
        expect(await read).toEqual(content);
      }
    }

    const left = Array.from({ length: model.length * places }, (_, index) => index);
    while (left.length > 0) {
      const [index] = left.splice(random(left.length), 1) as [number];
      const [holder, place] = [Math.floor(index / places), index % places];
      if (holder === driver) own.delete(place);
      else void at(holder).drop.remote(place);
    }
    // Collectors tell owners, and owners' collectors those of what was inside; all are driven here, so that the wait is for an event.
    for (let round = 0; ; round++) {
      globalThis.gc?.();
      await ray.get(actors.map((actor) => actor.collect.remote()));
      const store = currentCaller()?.objects.store;
      const counts = [
        store?.exportedCount,
        store?.borrowedCount,
        ...(await ray.get(actors.map((actor) => actor.exported.remote()))),
        ...(await ray.get(actors.map((actor) => actor.borrowed.remote()))),
      ];
      if (counts.every((count) => count === 0)) break;
      if (round === 200) expect.fail(`objects are still held: ${counts.join(", ")}`);
    }
    for (const actor of actors) await ray.kill(actor);
  },
);
