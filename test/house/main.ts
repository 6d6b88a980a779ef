/**
 * How readable the sources are, in figures, beside what is aimed at.
 *
 *     npx -y pnpm@12 house [--list "members of a class"]
 */
import { parseArgs } from "node:util";
import { aims } from "./aims.ts";
import { type Measure, measure } from "./measure.ts";

const { values } = parseArgs({ options: { list: { type: "string" } } });
const findings = measure();

for (const [name, { what, aim, most }] of Object.entries(aims)) {
  const size = findings[name as Measure].length;
  console.log(`${String(size).padStart(6)}  ${what} (aim: ${aim}; at most ${most} now)`);
}
if (values.list !== undefined) {
  for (const { place, what, size } of findings[values.list as Measure] ?? []) {
    console.log(`${String(size).padStart(6)}  ${place}  ${what}`);
  }
}
