/** The task that piscina.ts and tinypool.ts run. */
import type { Addends } from "../subject.ts";

export default function add({ a, b }: Addends): number {
  return a + b;
}
