/** The tiny policy and critic in their own threads, as a trainer holds them. */

import * as ray from "@rayling/core";
import { asTensor } from "@rayling/data-proto";
import type { CriticHandle, PolicyHandle } from "@rayling/trainer";
import { TinyCriticActor, TinyPolicyActor } from "@rayling/trainer/tiny";
import { afterAll, beforeAll, expect, test } from "vitest";
import { asked, bitsOf, rowsOf, small, textRows } from "./tiny-rows.ts";
import { inFull } from "../../../../test/fixtures/suite.ts";

beforeAll(async () => {
  await ray.init();
});
afterAll(async () => {
  await ray.shutdown();
});

test("a policy and its reference, each in a thread: the reference stays what it was set to", async () => {
  const policy: PolicyHandle = TinyPolicyActor.remote(small);
  const reference: PolicyHandle = TinyPolicyActor.remote({ ...small, seed: 77 });
  const { version, weights } = await ray.get(policy.state.remote());
  // Without the optimiser's part: it only answers.
  await ray.get(reference.setState.remote({ version, weights, optimizer: {} }));
  const rollouts = [];
  const request = { prompts: asked("ab=", "d="), n: 4, maxResponseLength: 6, seed: 1 };
  for await (const ref of policy.generate.remote(request)) rollouts.push(...(await ray.get(ref)));
  expect(new Set(rollouts.map(({ prompt, sample }) => 4 * prompt + sample)).size).toBe(8);
  const rows = rowsOf(rollouts.map(({ promptIds, responseIds }) => [promptIds, responseIds]));
  const [own, referred] = await ray.get([
    policy.logProbs.remote(rows),
    reference.logProbs.remote(rows),
  ]);
  expect(referred.logProbs.data).toEqual(own.logProbs.data);
  const slopes = asTensor(new Float32Array(own.logProbs.data.length).fill(-1), own.logProbs.shape);
  await ray.get(policy.update.remote({ ...rows, gradLogProbs: slopes }));
  const [later, same] = await ray.get([
    policy.logProbs.remote(rows),
    reference.logProbs.remote(rows),
  ]);
  expect(same.logProbs.data).toEqual(own.logProbs.data);
  expect(later.logProbs.data).not.toEqual(own.logProbs.data);
});

test("answers of a call have the weights of that call, also when an update is right behind it", async () => {
  const policy: PolicyHandle = TinyPolicyActor.remote(small);
  const rows = textRows(["ab=", "ba"]);
  const answers = policy.generate.remote({ prompts: asked("ab="), n: 600, maxResponseLength: 6 });
  const updated = policy.update.remote({
    ...rows,
    gradLogProbs: asTensor(Float32Array.of(1, 1), [1, 2]),
  });
  const versions = new Set<number>();
  for await (const ref of answers) {
    for (const { version } of await ray.get(ref)) versions.add(version);
  }
  await ray.get(updated);
  expect([...versions]).toEqual([0]);
  expect((await ray.get(policy.state.remote())).version).toBe(1);
});

test.runIf(inFull("fit/tiny-training.test.ts goes on with a checkpoint in new actors, bit by bit"))(
  "a state goes on in a new actor bit by bit",
  async () => {
    const rows = textRows(["ab=", "ba"]);
    const goOn = async (policy: PolicyHandle): Promise<string> => {
      const gradLogProbs = asTensor(Float32Array.of(-1, 0.5), [1, 2]);
      await ray.get(policy.update.remote({ ...rows, gradLogProbs }));
      return bitsOf(await ray.get(policy.state.remote()));
    };
    const policy: PolicyHandle = TinyPolicyActor.remote(small);
    await goOn(policy);
    const next: PolicyHandle = TinyPolicyActor.remote({ ...small, seed: 5 });
    await ray.get(next.setState.remote(await ray.get(policy.state.remote())));
    expect(await goOn(next)).toBe(await goOn(policy));
  },
);

test("a critic answers from its thread, and what it refuses is told as it is", async () => {
  const critic: CriticHandle = TinyCriticActor.remote(small);
  const rows = textRows(["ab=", "ba"]);
  expect((await ray.get(critic.values.remote(rows))).shape).toEqual([1, 2]);
  const gradValues = asTensor(Float32Array.of(1), [1, 1]);
  await expect(ray.get(critic.update.remote({ ...rows, gradValues }))).rejects.toMatchObject({
    name: "TrainerInputError",
    input: "gradValues",
  });
});
