/**
 * Many actors under a random mix of calls, kills, exits, heap limits, cancellations and restarts, from one seed; twice, for what is left of the second.
 *
 * RAYLING_CHAOS_SEED and RAYLING_CHAOS_MS choose another run; a failure names its seed. The model knows of every call whether it must, may or
 * must not have run, and in which order.
 */
import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Chaos, type ChaosAnswer, type ChaosClass, chaosTask } from "../fixtures/chaos.ts";
import { seededRandom } from "../servers/seeded.ts";

const seed = Number(process.env["RAYLING_CHAOS_SEED"] ?? 20_261_121);
const durationMs = Number(process.env["RAYLING_CHAOS_MS"] ?? 10_000);

interface Made {
  readonly isolation: ray.Isolation;
  /** It has a small heap. */
  readonly isLimited: boolean;
  readonly actor: ray.ActorHandle<ChaosClass>;
  /** Numbers of its calls, in the order they were made, by what became of them. */
  readonly calls: number[];
  readonly answers: Map<number, ChaosAnswer>;
}

const expectedErrors: ReadonlySet<string> = new Set([
  "ACTOR_DIED",
  "ACTOR_UNAVAILABLE",
  "TASK_CANCELLED",
]);

test(
  `chaos: every promise settles and every result is the model's (seed ${seed})`,
  async () => {
    // What is loaded, compiled and made once for all stays; what is left of each call and each actor would come again.
    const heaps = [await heapUsed()];
    for (const round of [0, 1]) {
      const story = await chaos(200, seed + round);
      heaps.push(await heapUsed());
      const [before = 0, after = 0] = heaps.slice(-2);
      const grown = `${(before / 1e6).toFixed(1)} to ${(after / 1e6).toFixed(1)} MB`;
      process.stdout.write(`chaos ${round + 1}: ${story}; heap from ${grown}\n`);
    }
    const [, first = 0, second = 0] = heaps;
    expect(second).toBeLessThan(1.1 * first);
  },
  2 * durationMs + 300_000,
);

async function heapUsed(): Promise<number> {
  for (let round = 0; round < 5; round++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed;
}

/** A session from its beginning to its end, of which nothing is left. Returns what happened in it. */
async function chaos(actorCount: number, seedOfRound: number): Promise<string> {
  const random = seededRandom(seedOfRound);
  const pick = (count: number): number => Math.floor(random() * count);
  const tally = new Map<string, number>();
  const settled: Promise<unknown>[] = [];
  let made = 0;
  let calls = 0;
  await ray.init({ numCpus: actorCount + 8, prewarm: 2, stuckWarningMs: 0 });

  const create = (): Made => {
    made += 1;
    const kind = pick(20);
    const isolation = kind === 0 ? "process" : kind < 11 ? "shared" : "thread";
    const isLimited = kind === 11;
    const actor = Chaos.options({
      isolation,
      maxRestarts: pick(3) === 0 ? 0 : 3,
      ...(isLimited ? { runtimeEnv: { resourceLimits: { maxOldGenerationSizeMb: 24 } } } : {}),
    }).remote();
    return { isolation, isLimited, actor, calls: [], answers: new Map() };
  };

  /** An outcome that the model allows, or the test fails. */
  const watch = (what: string, promise: Promise<unknown>, code?: string): void => {
    settled.push(
      promise.then(
        () => tally.set(what, (tally.get(what) ?? 0) + 1),
        (error: unknown) => {
          const found = (error as { code?: string }).code ?? (error as Error).name;
          tally.set(found, (tally.get(found) ?? 0) + 1);
          if (!expectedErrors.has(found) && found !== code) throw error;
        },
      ),
    );
  };

  const add = (one: Made, ref: ray.ObjectRef<ChaosAnswer>, call: number): void => {
    one.calls.push(call);
    watch(
      "added",
      ray.get(ref).then((answer) => one.answers.set(call, answer)),
    );
  };

  const actors = Array.from({ length: actorCount }, create);
  // Starting two hundred threads is not what is tested here.
  await ray.get(actors.map(({ actor }) => actor.__ray_ready__.remote()));
  const end = performance.now() + durationMs;
  while (performance.now() < end) {
    for (let step = 0; step < 20; step++) {
      const slot = pick(actorCount);
      const one = actors[slot] as Made;
      const { actor } = one;
      const dice = random();
      const call = calls++;
      if (dice < 0.6) add(one, actor.add.remote(call), call);
      else if (dice < 0.7) {
        const ref = actor.addLater.remote(call);
        add(one, ref, call);
        if (random() < 0.5) ray.cancel(ref);
      } else if (dice < 0.74) add(one, actor.add.remote(call, new Uint8Array(70_000)), call);
      else if (dice < 0.8) watch("thrown", ray.get(actor.fail.remote(call)), "RangeError");
      else if (dice < 0.86) {
        watch(
          "task",
          ray.get(chaosTask.remote(call)).then((two) => expect(two).toBe(2 * call)),
        );
      } else if (dice < 0.9) {
        const stream = actor.count.remote(5);
        watch(
          "stream",
          (async () => {
            let next = 0;
            for await (const item of stream) expect(await ray.get(item)).toBe(next++);
            expect(next).toBe(5);
          })(),
        );
      } else if (dice < 0.95) {
        // In a thread that is shared this ends a hundred actors, so it is rare.
        if (one.isLimited) watch("eat", ray.get(actor.eat.remote()));
        else if (one.isolation === "shared" && random() < 0.95) continue;
        else if (dice < 0.935) watch("exit", ray.get(actor.exit.remote(pick(4))));
        else watch("crash", ray.get(actor.crashLater.remote()));
      } else if (dice < 0.965) {
        const held = actor.addLater.remote(call);
        one.calls.push(call);
        ray.cancel(held);
        watch("cancelled", ray.get(held));
      } else if (dice < 0.975) watch("leave", ray.get(actor.leave.remote()));
      else if (dice < 0.985) watch("restart", ray.kill(actor, { noRestart: false }));
      else if (dice < 0.99) {
        watch("kill", ray.kill(actor));
        actors[slot] = create();
      } else {
        // Nobody holds it any more; what it was asked is still answered.
        actors[slot] = create();
      }
    }
    await new Promise((resolve) => setImmediate(resolve));
  }

  // Those that eat end by their heap limit or by this; then everything that was asked has its answer.
  const logs = await Promise.all(
    actors.map(async ({ actor }) =>
      ray.get(actor.log.remote(), { timeoutMs: 60_000 }).catch(() => undefined),
    ),
  );
  for (const [index, one] of actors.entries()) {
    const log = logs[index];
    if (log === undefined) continue;
    // Each call ran at most once, in the order in which it was made, and what was answered is what happened.
    expect(new Set(log.calls).size).toBe(log.calls.length);
    expect(log.calls.every((call) => one.calls.includes(call))).toBe(true);
    for (const [call, answer] of one.answers) {
      if (answer.life === log.life) expect(log.calls[answer.count - 1]).toBe(call);
    }
  }
  await Promise.all(actors.map(({ actor }) => ray.kill(actor)));
  await Promise.all(settled);
  expect(tally.get("added")).toBeGreaterThan(0);

  await ray.shutdown();
  expect(
    process.getActiveResourcesInfo().filter((name) => name === "MessagePort" || name === "Worker"),
  ).toEqual([]);
  expect(children()).toEqual([]);
  return `${calls} operations on ${made} actors; ${[...tally].map(([name, count]) => `${name} ${count}`).join(", ")}`;
}

/** Processes that this one started and that still live. */
function children(): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(parent) === process.pid && state !== "Z";
    } catch {
      // It ended meanwhile.
      return false;
    }
  });
}
