#!/usr/bin/env node
/**
 * The entry point of the command `rayling`: it refuses a Node that is too old, and then loads the
 * rest, process.ts. A terminal shows that it does.
 */

try {
  await import("@rayling/core/floor");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
const { Silence } = await import("./output/silence.ts");
const silence = Silence.open();
// A shell asks for completions, and shows nothing else.
if (process.stderr.isTTY && process.argv[2] !== "complete") silence.doing("starting");
const { runProcess } = await import("./process.ts");
await runProcess(silence);
silence.close();
