/** Goes on from the latest checkpoint of a folder and saves one step after the other, as fast as it can, until it is killed. Tells what it found and each step that is saved. */

import { resumeCheckpoint, saveCheckpoint } from "../../src/checkpoint/checkpoint-folder.ts";
import { checkpointOf } from "./states.ts";

const [, , folder = ""] = process.argv;
const found = await resumeCheckpoint({ folder });
let step = found?.globalStep ?? 0;
process.stdout.write(`${JSON.stringify({ found: step })}\n`);
for (;;) {
  step += 1;
  await saveCheckpoint(checkpointOf(step, 200_000), { folder, keep: 2 });
  process.stdout.write(`${JSON.stringify({ saved: step })}\n`);
}
