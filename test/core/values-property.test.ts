/**
 * Values at random through real actors and back, as arguments, results and stored values: packages/core/test/values-property.test.ts has a thousand more,
 * without the way.
 */
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Counter } from "../fixtures/actors.ts";
import { isolation } from "../fixtures/isolation.ts";
import { initIn, isolations } from "../fixtures/isolations.ts";
import { randomValue } from "../fixtures/random-values.ts";
import { difference } from "../fixtures/same-value.ts";
import { sized } from "../fixtures/suite.ts";

const seeds = sized({ gate: 60, full: 400 });
const ways = isolation === "thread" ? isolations : [isolation as ray.Isolation];

describe.each(ways)("values at random: %s", (way) => {
  beforeAll(() => initIn(way));
  afterAll(() => ray.shutdown());

  test(`arrive equal, or are refused by their path: ${seeds} seeds`, async () => {
    const counter = Counter.remote();
    for (let seed = 1; seed <= seeds; seed++) {
      const { value, culprits } = randomValue(seed);
      let ref: ray.ObjectRef<unknown[]>;
      try {
        ref = counter.echo.remote(value);
      } catch (error) {
        expect(error, `seed ${seed}`).toBeInstanceOf(ray.NotEncodableError);
        expect((error as ray.NotEncodableError).path).toMatch(/^args\[0\]/);
        expect(culprits.size, `seed ${seed}`).toBeGreaterThan(0);
        continue;
      }
      expect(culprits.size, `seed ${seed}`).toBe(0);
      const [arrived] = await ray.get(ref);
      const stored = await ray.get(ray.put(value));
      const found = difference(value, arrived) ?? difference(value, stored);
      if (found !== undefined) {
        const text = inspect(value, { depth: 6, maxArrayLength: 20, maxStringLength: 40 });
        expect.fail(`seed ${seed}: ${found}\n${text.slice(0, 4000)}`);
      }
    }
  });
});
