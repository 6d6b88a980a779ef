import { RewardLoopManager } from "@rayling/reward-loop";
import * as ray from "@rayling/core";
const t0 = performance.now();
const mode = process.argv[2] ?? "sync";
const loop = await RewardLoopManager.create({ workers: 2, concurrency: 8, executors: 2, timeoutMs: 300, reward: "/work/main/packages/reward-loop/test/fixtures/troublemaker.ts:" + mode, resourceLimits: { maxOldGenerationSizeMb: 64 } });
console.log("created", performance.now() - t0, loop.workerNames);
const texts = Array.from({ length: 200 }, (_, i) => String(i));
texts[3] = "throw"; texts[20] = "hang"; texts[41]="exit"; texts[60] = "garbage"; texts[80]="unsendable"; texts[81]="memory"; 
if (mode==="later") texts[100]="wait forever";
if (mode==="unnamed") texts[120]="throw uncaught";
const seen = new Map();
for await (const { index, outcome } of loop.scoreStream(texts.map((response) => ({ dataSource: "x", response, groundTruth: "" })))) {
  if (seen.has(index)) console.log("TWICE", index);
  seen.set(index, outcome);
  if (!outcome.valid) console.log(index, texts[index], outcome.error.code, outcome.error.message.slice(0, 100), outcome.latencyMs.toFixed(1), outcome.attempts);
  else if (outcome.rewardScore !== index) console.log("WRONG", index, outcome);
}
console.log(seen.size, performance.now() - t0);
await loop.close(); console.log(await ray.listNamedActors());
await ray.shutdown();
