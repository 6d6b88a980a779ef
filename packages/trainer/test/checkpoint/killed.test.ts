/** A process that is killed while it saves leaves a checkpoint that is whole: the last one that it told of, or the one after. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { resumeCheckpoint, saveCheckpoint } from "../../src/index.ts";
import { folder } from "../data/rows.ts";
import { checkpointOf } from "./states.ts";
import { sized } from "../../../../test/fixtures/suite.ts";

const saver = fileURLToPath(new URL("./saver.ts", import.meta.url));

/** How long after it told of a step the process is killed, in ms: a save takes some ten to a hundred. */
const moments = sized({
  gate: [2, 9, 20, 35, 50],
  full: [0, 2, 5, 9, 14, 20, 27, 35, 50, 70],
});

/** The last step it told of. */
async function killedAfter(path: string, ms: number): Promise<number> {
  const child = spawn(process.execPath, [saver, path], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  let told = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const { found, saved } = JSON.parse(line) as { found?: number; saved?: number };
    told = saved ?? found ?? told;
    if (saved !== undefined) setTimeout(() => child.kill("SIGKILL"), ms);
  }
  const [, signal] = (await exited) as [number | null, string | null];
  expect(signal).toBe("SIGKILL");
  return told;
}

test("killed at any moment, again and again, it goes on where it was", async () => {
  const path = await folder();
  let steps = 0;
  let unfinished = 0;
  for (const ms of moments) {
    const told = await killedAfter(path, ms);
    expect(told).toBeGreaterThan(steps);
    const found = await resumeCheckpoint({ folder: path });
    expect(found?.passedOver).toEqual([]);
    steps = found?.globalStep ?? 0;
    expect([told, told + 1]).toContain(steps);
    expect(found).toMatchObject(checkpointOf(steps, 200_000));
    unfinished += (await readdir(path)).filter((name) => name.endsWith(".unfinished")).length;
  }
  // It was in the middle of one, at least now and then.
  expect(unfinished).toBeGreaterThan(0);
  await saveCheckpoint(checkpointOf(steps + 1), { folder: path, keep: 2 });
  expect((await readdir(path)).toSorted()).toEqual(
    [
      `global_step_${steps}`,
      `global_step_${steps + 1}`,
      "latest_checkpointed_iteration.txt",
    ].toSorted(),
  );
});
