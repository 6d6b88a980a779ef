/**
 * A thousand values at random, through the codec: each arrives equal, or is refused by the path of what cannot travel.
 *
 * `structuredClone` is the oracle where it agrees. It differs on purpose: it loses fields and classes of errors and the class Buffer, brings the whole
 * buffer of every view, makes plain objects of class instances and of URLs, and refuses proxies of plain objects.
 */
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { randomValue, type RandomValue, unreadable } from "../../../test/fixtures/random-values.ts";
import { difference } from "../../../test/fixtures/same-value.ts";
import { seededRandom } from "../../../test/servers/seeded.ts";
import { Codec } from "../src/protocol/codec.ts";
import { NotEncodableError, RaySystemError } from "../src/shared/errors.ts";
import { sized } from "../../../test/fixtures/suite.ts";

/** SEEDS=100000 looks further, by hand. */
const seeds = Number(process.env["SEEDS"] ?? sized({ gate: 300, full: 1000 }));

const codec = new Codec({
  isReference: () => false,
  write: () => undefined,
  read: () => ({}),
  decline: () => undefined,
});

/** What is wrong with what became of the value; undefined if nothing. */
function problem({ value, culprits }: RandomValue): string | undefined {
  let arrived: unknown;
  try {
    arrived = codec.decode(codec.encode(value, "value"));
  } catch (error) {
    if (!(error instanceof NotEncodableError)) return `threw ${inspect(error)}`;
    if (error.path.includes("…")) return undefined;
    return culprits.has(partAt(value, error.path)) ? undefined : `was refused: ${error.message}`;
  }
  if (culprits.size > 0) return "was not refused";
  return difference(value, arrived) ?? oracle(value, arrived);
}

function oracle(value: unknown, arrived: unknown): string | undefined {
  const found = difference(structuredClone(value), arrived, { isClone: true });
  return found === undefined ? undefined : `structuredClone gives another value: ${found}`;
}

/** The part of a value that a path names. */
function partAt(value: unknown, path: string): unknown {
  let part = value;
  let rest = path.slice("value".length);
  while (rest !== "") {
    const [step, get, keys, member, item, name] =
      /^(?:\.get\(((?:"(?:[^"\\]|\\.)*"|[^")])*)\)|\.keys\(((?:"(?:[^"\\]|\\.)*"|[^")])*)\)|\.values\(\)\[(\d+)\]|\[((?:"(?:[^"\\]|\\.)*"|\d+))\]|\.([A-Za-z_$][\w$]*))/.exec(
        rest,
      ) ?? [];
    if (step === undefined) return undefined;
    rest = rest.slice(step.length);
    if (get !== undefined) part = entryAt(part, get)?.[1];
    else if (keys !== undefined) part = entryAt(part, keys)?.[0];
    else if (member !== undefined) part = [...(part as Set<unknown>)][Number(member)];
    else {
      const key = item === undefined ? (name as string) : String(JSON.parse(item));
      part = (part as Record<string, unknown>)[key];
    }
  }
  return part;
}

function entryAt(map: unknown, text: string): [unknown, unknown] | undefined {
  return [...(map as Map<unknown, unknown>)].find(([key]) =>
    typeof key === "string" ? JSON.stringify(key) === text : String(key) === text,
  );
}

/** The smallest value of that seed which shows it. */
function smallest(seed: number): string {
  for (let size = 1; size <= 40; size++) {
    const made = randomValue(seed, { size });
    const found = problem(made);
    if (found !== undefined) {
      const text = inspect(made.value, { depth: 8, maxArrayLength: 20, maxStringLength: 40 });
      return `seed ${seed}, size ${size}: ${found}\n${text.slice(0, 4000)}`;
    }
  }
  return `seed ${seed}`;
}

describe("a value at random", () => {
  test(`arrives equal, or is refused by its path: ${seeds} seeds`, () => {
    let refused = 0;
    for (let seed = 1; seed <= seeds; seed++) {
      const made = randomValue(seed);
      if (made.culprits.size > 0) refused += 1;
      if (problem(made) !== undefined) expect.fail(smallest(seed));
    }
    // The series has both kinds.
    expect(refused).toBeGreaterThan(seeds / 20);
    expect(refused).toBeLessThan(seeds / 2);
  });

  test("is refused by the path of a getter that throws, wherever it is", () => {
    const value = { a: [new Map([["k", Object.defineProperty({}, "x y", getter())]])] };
    expect(() => codec.encode(value, "value")).toThrow(
      'value.a[0].get("k")["x y"] cannot be read: Error: this getter throws',
    );
  });

  test("is the same one when it is read again", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const { value } = randomValue(seed, { refusals: false });
      const encoded = codec.encode(value, "value");
      codec.decode(encoded);
      expect(difference(value, codec.decode(encoded)), `seed ${seed}`).toBeUndefined();
    }
  });

  test("whose bytes were changed on the way is refused, or is another value, and changes no prototype", () => {
    const before = Reflect.ownKeys(Object.prototype).length;
    for (let seed = 1; seed <= 300; seed++) {
      const { value } = randomValue(seed, { refusals: false, sharedMemory: false });
      const encoded = codec.encode(value, "value");
      const random = seededRandom(seed);
      for (let round = 0; round < 5; round++) {
        const bytes = Uint8Array.from(encoded.bytes.subarray(encoded.start, encoded.end));
        for (let left = 1 + Math.floor(random() * 4); left > 0; left--) {
          bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
        }
        try {
          codec.decode({ ...encoded, bytes, start: 0, end: bytes.length });
        } catch (error) {
          expect(error, `seed ${seed}, round ${round}`).toBeInstanceOf(RaySystemError);
        }
      }
    }
    expect(Reflect.ownKeys(Object.prototype).length).toBe(before);
    expect(Object.getPrototypeOf(Object.prototype)).toBeNull();
    expect(Object.keys(Array.prototype)).toEqual([]);
  });
});

function getter(): PropertyDescriptor {
  return {
    enumerable: true,
    get: () => {
      throw unreadable;
    },
  };
}
