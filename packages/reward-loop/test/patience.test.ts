/** A judge may take its time: the loop's own waits for it are not told of as stuck. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { fixture } from "./loop.ts";

test("slow answers, limits and pauses warn of nothing", async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    fixture("slow-judge.ts"),
  ]);
  expect(stdout).toContain("[true,true]");
  const told = `${stdout}\n${stderr}`;
  // Threads that start take longer than that, too.
  expect(told).toContain("has waited");
  expect(told).not.toMatch(
    /^(?:\([^)]*\))? +(?:the next item of )?\w+\.(?:take|run|reply|computeScore|acquire|watch|pauses) \(/m,
  );
});
