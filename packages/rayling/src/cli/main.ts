#!/usr/bin/env node
/**
 * The entry point of the command `rayling`: it refuses a Node that is too old, and then loads the
 * rest, process.ts.
 */

try {
  await import("@rayling/core/floor");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
await import("./process.ts");
