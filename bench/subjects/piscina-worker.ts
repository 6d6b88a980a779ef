/** The task that piscina.ts runs. */
import type { AddTask } from "./piscina.ts";

export default function add({ a, b }: AddTask): number {
  return a + b;
}
