// node examples/rewards/code-rewards.ts
//
// Programs of a model, scored by the tests of their tasks: verl's data source codecontests. Each
// test is a confined process of its own.

import { RewardLoopManager } from "@rayling/reward-loop";
import { LocalSandbox } from "@rayling/reward-manager-registry";
import * as ray from "rayling";

const task = {
  dataSource: "codecontests",
  // Add up the numbers of a line.
  groundTruth: { inputs: ["1 2 3", "40 2"], outputs: ["6", "42"] },
};
const read = "require('fs').readFileSync(0, 'utf8').split(' ').map(Number)";
const programs = {
  right: `console.log(${read}.reduce((sum, n) => sum + n))`,
  "half right": `const [a, b = 0] = ${read};\nconsole.log(a + b)`,
  "asks the internet": "fetch('http://127.0.0.1').then(console.log)",
  "reads secrets": "console.log(require('fs').readFileSync('/etc/passwd', 'utf8'))",
};

const loop = await RewardLoopManager.create({ workers: 1, executors: 1 });
const scores = await Promise.all(
  Object.entries(programs).map(async ([name, program]) => {
    const response = `My answer:\n\`\`\`js\n${program}\n\`\`\``;
    const outcome = await loop.computeScore({ ...task, response });
    return { name, score: outcome.valid ? outcome.rewardScore : outcome.error.code };
  }),
);
console.log(`programs run apart by: ${await new LocalSandbox().isolation()}`);
console.table(scores);
await loop.close();
await ray.shutdown();
