/**
 * Runs seeds of the simulated world, one after the other:
 *
 *     node packages/cluster/test/simulation/main.ts --seeds 10000 [--first 0]    # prints each seed that fails, and exits with 1
 *     node packages/cluster/test/simulation/main.ts --seed 4711                  # one seed, step by step
 */
import { parseArgs } from "node:util";
import { type Result, runSeed } from "./story.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    first: { type: "string", default: "0" },
    seed: { type: "string" },
    json: { type: "boolean", default: false },
    most: { type: "string", default: "10" },
  },
});

if (values.seed !== undefined) {
  const result = await runSeed(Number(values.seed), (line) => console.log(line));
  show(result);
  process.exitCode = result.problems.length > 0 ? 1 : 0;
} else {
  const first = Number(values.first);
  const count = Number(values.seeds);
  const failed: Result[] = [];
  const startMs = performance.now();
  const sums = { seeds: 0, events: 0, calls: 0, simulatedMs: 0 };
  for (let seed = first; seed < first + count && failed.length < Number(values.most); seed++) {
    const result = await runSeed(seed);
    sums.seeds += 1;
    sums.events += result.events;
    sums.calls += result.calls;
    sums.simulatedMs += result.simulatedMs;
    if (result.problems.length === 0) continue;
    failed.push(result);
    if (!values.json) show(result);
  }
  const seconds = (performance.now() - startMs) / 1000;
  if (values.json) console.log(JSON.stringify({ ...sums, seconds, failed }));
  else {
    console.log(
      `${sums.seeds} seeds in ${seconds.toFixed(1)} s: ${sums.calls} calls, ${sums.events} events, ${(sums.simulatedMs / 3_600_000).toFixed(1)} simulated hours; ${failed.length} failed`,
    );
  }
  process.exitCode = failed.length > 0 ? 1 : 0;
}

function show({ seed, weather, problems, calls, events, simulatedMs }: Result): void {
  console.log(
    `seed ${seed} (${weather}): ${calls} calls, ${events} events, ${(simulatedMs / 1000).toFixed(0)} s`,
  );
  for (const problem of problems) console.log(`  ${problem}`);
}
