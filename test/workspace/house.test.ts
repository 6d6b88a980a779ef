/** The sources do not get harder to read: what is counted of them (test/house) only goes down. */
import { expect, test } from "vitest";
import { aims } from "../house/aims.ts";
import { type Finding, type Measure, measure } from "../house/measure.ts";

const findings = measure();

test.each(Object.entries(aims))("%s", (name, { what, most }) => {
  const found: readonly Finding[] = findings[name as Measure];
  const worst = found.slice(0, 10).map((one) => `${one.size} ${one.what}: ${one.place}`);
  expect(found.length, `${what}: ${worst.join("; ")}`).toBeLessThanOrEqual(most);
});
