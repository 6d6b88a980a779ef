#!/usr/bin/env node
/** What the command `rayling` starts: says so on a Node that is too old for the rest, which is loaded after that. process.ts is the rest. */

try {
  await import("@rayling/core/floor");
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}
await import("./process.ts");
