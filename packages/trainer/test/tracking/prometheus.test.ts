/** The last step as gauges of a real session. */

import { expect, test } from "vitest";
import { init, metrics, shutdown } from "@rayling/core";
import { Tracking } from "@rayling/trainer";
import { optionsIn, runFolder } from "./run-folder.ts";

test("gauges hold the last step, by verl's names in their label", async () => {
  await init();
  try {
    const tracking = await Tracking.open(optionsIn(await runFolder(), { logger: "prometheus" }));
    tracking.log(
      { "critic/score/mean": 0.25, "val-core/a-b/mean@1": 0.5, "val-core/a_b/mean@1": 0.75 },
      1,
    );
    tracking.log({ "critic/score/mean": 0.5, "critic/values/mean": NaN }, 2);
    tracking.progress({ step: 3, inFlight: 12 });
    await tracking.close();
    const text = await metrics.text();
    const run = 'project="maths",experiment="grpo"';
    for (const line of [
      `ray_train_metric{metric="critic/score/mean",${run}} 0.5`,
      `ray_train_metric{metric="val-core/a-b/mean@1",${run}} 0.5`,
      `ray_train_metric{metric="val-core/a_b/mean@1",${run}} 0.75`,
      `ray_train_metric{metric="training/global_step",${run}} 2`,
      `ray_train_metric{metric="reward/inflight_now",${run}} 12`,
    ]) {
      expect(text.split("\n")).toContain(line);
    }
    expect(text.split("\n")).toContain(`ray_train_metric{metric="critic/values/mean",${run}} NaN`);
  } finally {
    await shutdown();
  }
});
