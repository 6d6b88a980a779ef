/**
 * How readable the sources are, in figures, beside what is aimed at.
 *
 *     npx -y pnpm@12 house [--list "members of a class"]
 */
import { parseArgs } from "node:util";
import { aims, exceptions, isException } from "./aims.ts";
import { type Measure, measure } from "./measure.ts";

const { values } = parseArgs({ options: { list: { type: "string" } } });
const findings = measure();

for (const [name, { what, most }] of Object.entries(aims)) {
  const measured = name as Measure;
  const found = findings[measured].filter((one) => !isException(measured, one.what));
  console.log(`${String(found.length).padStart(6)}  ${what} (at most ${most})`);
}
for (const [, what, reason] of exceptions) console.log(`   but ${what}: ${reason}`);
if (values.list !== undefined) {
  for (const { place, what, size } of findings[values.list as Measure] ?? []) {
    console.log(`${String(size).padStart(6)}  ${place}  ${what}`);
  }
}
