import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as ray from "rayling";
import { Tally } from "../tally.ts";

before(() => ray.init());
after(() => ray.shutdown());

test("the actor keeps its scores between calls", async () => {
  const tally = Tally.remote();
  const counts = [1, 0, 1].map((score) => tally.add.remote("sums", score));
  assert.deepEqual(await ray.get(counts), [1, 2, 3]);
  assert.deepEqual(await ray.get(tally.means.remote()), { sums: 2 / 3 });
});
