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
const { Silence } = await import("./output/silence/silence.ts");
const silence = Silence.open();
// A shell that completes shows nothing else. A pipe has lines of the long commands alone.
const [command = ""] = process.argv.slice(2);
const isLong = ["quickstart", "score", "train"].includes(command);
if (isLong || (process.stderr.isTTY && command !== "complete")) silence.doing("starting");
// A machine that took so long to come here is busy, and takes long for what follows, too.
const busyMs = 300;
if (isLong && performance.now() > busyMs) silence.speak();
const { runProcess } = await import("./process.ts");
await runProcess(silence);
silence.close();
