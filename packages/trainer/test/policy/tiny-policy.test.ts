/** The tiny policy in this thread: what it answers, what it thinks of answers, and that an update goes the way of the loss's gradient. */

import { asTensor, tensor } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "@rayling/trainer";
import type { PolicyState, PolicyUpdate, TokenRows } from "@rayling/trainer";
import { TinyPolicy } from "@rayling/trainer/tiny";
import type { TinySettings } from "@rayling/trainer/tiny";
import { beforeAll, describe, expect, test } from "vitest";
import { answersOf, asked, bitsOf, rowsOf, small, textRows, tokenizer } from "./tiny-rows.ts";

const pairs = ["ab=", "ba=", "cd=", "dc=", "a=", "dd="].map((content) => ({
  prompt: [{ role: "user", content }],
  answer: content.replace("=", "").split("").toReversed().join(""),
}));

/** A model that has learned a little, so that nothing is 0 by its start, and whose embeddings are not so small that a step along one leads elsewhere. */
let begun: PolicyState;
beforeAll(async () => {
  const policy = new TinyPolicy(small);
  await policy.supervise({ pairs, steps: 12, batchSize: 8, lr: 1e-2 });
  const { version, weights } = await policy.state();
  for (const name of ["tokens", "positions"]) {
    weights[name]!.forEach((weight, i) => (weights[name]![i] = 10 * weight));
  }
  begun = { version, weights, optimizer: {} };
});

async function begunPolicy(settings: Partial<TinySettings> = {}): Promise<TinyPolicy> {
  const policy = new TinyPolicy({ ...small, ...settings });
  await policy.setState(begun);
  return policy;
}

const inputOf = async (action: () => unknown): Promise<string> => {
  try {
    await action();
  } catch (error) {
    if (error instanceof TrainerInputError) return error.input;
    throw error;
  }
  throw new Error("it was taken");
};

/** Random numbers of a shape, the same for the same seed. */
const noise = (shape: readonly [number, number], seed: number): Tensor<"float32"> =>
  asTensor(
    Float32Array.from({ length: shape[0] * shape[1] }, (_, i) => Math.sin(seed + 12.9898 * i)),
    shape,
  );

describe("generate", () => {
  test("answers each prompt n times, with log-probs that logProbs gives for the same rows", async () => {
    const policy = await begunPolicy();
    const prompts = asked("ab=", "a=", "dcba=", "cd=", "b=");
    const n = 9;
    const reasons = new Set<string>();
    for (const temperature of [1, 0.7]) {
      const rollouts = await answersOf(policy, {
        prompts,
        n,
        maxResponseLength: 5,
        temperature,
        seed: 5,
      });
      expect(rollouts.map(({ prompt, sample }) => n * prompt + sample)).toEqual([
        ...Array(5 * n).keys(),
      ]);
      const rows = rowsOf(rollouts.map(({ promptIds, responseIds }) => [promptIds, responseIds]));
      const { logProbs } = await policy.logProbs({ ...rows, temperature });
      rollouts.forEach(({ rolloutLogProbs = [], responseIds, response, finishReason }, row) => {
        const [, R = 0] = rows.responses.shape;
        expect(rolloutLogProbs).toHaveLength(responseIds.length);
        Array.from(rolloutLogProbs, (logProb, token) =>
          expect(logProbs.data[row * R + token]).toBeCloseTo(logProb, 4),
        );
        expect(response).toBe(tokenizer.decode(responseIds));
        expect(finishReason).toBe(responseIds.at(-1) === 1 ? "stop" : "length");
        expect(responseIds.length).toBeLessThanOrEqual(5);
        expect(responseIds.slice(0, -1)).not.toContain(1);
        expect(responseIds).not.toContain(0);
      });
      for (const { finishReason } of rollouts) reasons.add(finishReason);
    }
    expect([...reasons].toSorted()).toEqual(["length", "stop"]);
  });

  test("gives the same answers for the same seed, others for another, and others again without one", async () => {
    const policy = await begunPolicy();
    const texts = async (seed?: number): Promise<string> => {
      const request = { prompts: asked("ab=", "cd="), n: 8, maxResponseLength: 6 };
      const rollouts = await answersOf(policy, {
        ...request,
        ...(seed === undefined ? {} : { seed }),
      });
      return rollouts.map(({ response }) => response).join();
    };
    const first = await texts(1);
    expect(await texts(1)).toBe(first);
    expect(await texts(2)).not.toBe(first);
    expect(await texts()).not.toBe(await texts());
    expect(new Set(first.split(",")).size).toBeGreaterThan(1);
  });

  test("an answer does not depend on what else is asked, and more samples leave the first as they are", async () => {
    const policy = await begunPolicy();
    const of = async (prompts: readonly string[], n: number): Promise<string[]> => {
      const request = { prompts: asked(...prompts), n, maxResponseLength: 6, seed: 9 };
      const rollouts = await answersOf(policy, request);
      return rollouts
        .filter(({ prompt, sample }) => prompt === 0 && sample < 2)
        .map((r) => r.response);
    };
    const alone = await of(["ab="], 2);
    expect(await of(["ab=", "d=", "abcd="], 2)).toEqual(alone);
    expect(await of(["ab="], 300)).toEqual(alone);
  });

  test("the likeliest token each time when nothing is drawn, or one is to choose from", async () => {
    const policy = await begunPolicy();
    const request = { prompts: asked("ab=", "cd="), maxResponseLength: 6 };
    const greedy = await answersOf(policy, { ...request, doSample: false });
    for (const settings of [{ temperature: 0 }, { topK: 1 }, { topP: 1e-9 }]) {
      expect(await answersOf(policy, { ...request, ...settings, seed: 4 })).toEqual(greedy);
    }
    for (const { promptIds, responseIds } of greedy) {
      // Any other token in its place would have been less likely.
      for (let at = 0; at < responseIds.length; at++) {
        const others = [1, 2, 3, 4, 5, 6].map((id) => [...responseIds.slice(0, at), id]);
        const { logProbs } = await policy.logProbs(rowsOf(others.map((ids) => [promptIds, ids])));
        const last = others.map((_, row) => logProbs.data[row * (at + 1) + at]!);
        expect(others[last.indexOf(Math.max(...last))]!.at(-1)).toBe(responseIds[at]);
      }
    }
  });

  test("has the weights of its call, whatever is updated before its answers are taken", async () => {
    const policy = await begunPolicy();
    const request = { prompts: asked("ab="), maxResponseLength: 6, seed: 1, n: 4 };
    const before = await answersOf(policy, request);
    const late = policy.generate(request);
    const rows = textRows(["ab=", "cccc"]);
    await policy.update({ ...rows, gradLogProbs: tensor([[-9, -9, -9, -9]], "float32") });
    expect(await answersOf({ generate: () => late }, request)).toEqual(before);
    const after = await answersOf(policy, request);
    expect(after.map(({ version }) => version)).toEqual([1, 1, 1, 1]);
    expect(after.map((r) => r.rolloutLogProbs)).not.toEqual(before.map((r) => r.rolloutLogProbs));
  });
});

describe("logProbs", () => {
  test("are those of a distribution, with its entropy and its sum of squares", async () => {
    const policy = await begunPolicy();
    const ids = [1, 2, 3, 4, 5, 6];
    const rows = rowsOf(ids.map((id) => [tokenizer.encode("ab="), [id]]));
    const { logProbs, entropys, sumPiSquared } = await policy.logProbs({ ...rows, temperature: 2 });
    const chances = Array.from(logProbs.data, Math.exp);
    const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
    expect(sum(chances)).toBeCloseTo(1, 5);
    expect(entropys.data[0]).toBeCloseTo(sum(chances.map((p) => -p * Math.log(p))), 5);
    expect(sumPiSquared?.data[0]).toBeCloseTo(sum(chances.map((p) => p * p)), 5);
  });

  test("do not depend on padding, nor on how many rows there are", async () => {
    const policy = await begunPolicy();
    const one = await policy.logProbs(textRows(["ab=", "ba"]));
    const rows = rowsOf(
      Array.from({ length: 11 }, () => [tokenizer.encode("ab="), tokenizer.encode("ba")]),
      { promptLength: 9, responseLength: 7 },
    );
    const { logProbs } = await policy.logProbs(rows);
    expect(logProbs.shape).toEqual([11, 7]);
    for (let row = 0; row < 11; row++) {
      expect(logProbs.data[row * 7]).toBeCloseTo(one.logProbs.data[0]!, 5);
      expect(logProbs.data[row * 7 + 1]).toBeCloseTo(one.logProbs.data[1]!, 5);
      expect([...logProbs.data.subarray(row * 7 + 2, row * 7 + 7)]).toEqual([0, 0, 0, 0, 0]);
    }
  });

  test("of no rows are none, and of a row without a response 0", async () => {
    const policy = await begunPolicy();
    const none = await policy.logProbs(textRows());
    expect(none.logProbs.shape[0]).toBe(0);
    const rows = textRows(["ab=", "ba"], ["ab=", ""]);
    const { logProbs } = await policy.logProbs(rows);
    expect([...logProbs.data.subarray(2)]).toEqual([0, 0]);
  });
});

describe("update", () => {
  const rows = textRows(["ab=", "ba"], ["cd=", "dccab"], ["a=", "a"], ["dd=", "dd"]);
  const shape = rows.responses.shape as [number, number];

  /** What the gradients are of: the sum of what came out, each times its slope. */
  async function lossOf(policy: TinyPolicy, update: PolicyUpdate): Promise<number> {
    const { logProbs, entropys } = await policy.logProbs(update);
    let loss = 0;
    logProbs.data.forEach((logProb, i) => {
      loss += logProb * update.gradLogProbs.data[i]!;
      // Padding comes back as 0.
      loss += entropys.data[i]! * (update.gradEntropys?.data[i] ?? 0);
    });
    return loss;
  }

  /** AdamW's first mean without memory of what was before: the gradient itself. */
  async function gradientOf(update: PolicyUpdate): Promise<PolicyState["weights"]> {
    const policy = await begunPolicy({ optim: { betas: [0, 0], clipGrad: Infinity } });
    await policy.update(update);
    const { optimizer } = await policy.state();
    const gradients = Object.keys(begun.weights).map((name) => [
      name,
      optimizer[`adam.mean.${name}`]!,
    ]);
    return Object.fromEntries(gradients) as PolicyState["weights"];
  }

  const updates: Readonly<Record<string, PolicyUpdate>> = {
    "of log-probs": { ...rows, gradLogProbs: noise(shape, 1) },
    "of log-probs at a temperature": { ...rows, gradLogProbs: noise(shape, 2), temperature: 0.6 },
    "of entropy": { ...rows, gradLogProbs: noise(shape, 0), gradEntropys: noise(shape, 3) },
  };

  test.each(Object.entries(updates))(
    "has the gradient that finite differences have: %s",
    async (_, update) => {
      const gradient = await gradientOf(update);
      const policy = await begunPolicy();
      for (const [name, slopes] of Object.entries(gradient)) {
        // Along the gradient of one tensor the loss rises by its length.
        const length = Math.hypot(...slopes);
        const distance = 0.01;
        const lossAt = async (steps: number): Promise<number> => {
          const moved = begun.weights[name]!.map(
            (weight, i) => weight + (steps * slopes[i]!) / length,
          );
          await policy.setState({ ...begun, weights: { ...begun.weights, [name]: moved } });
          return lossOf(policy, update);
        };
        // Of the fourth order: what is left is rounding.
        const rise = async (steps: number): Promise<number> =>
          (await lossAt(steps)) - (await lossAt(-steps));
        const near = (await rise(distance)) / (2 * distance);
        const far = (await rise(2 * distance)) / (4 * distance);
        expect(length, name).toBeGreaterThan(1e-4);
        expect(Math.abs((4 * near - far) / 3 / length - 1), name).toBeLessThan(0.02);
      }
    },
  );

  test("makes what it is told to like likelier, and entropy higher", async () => {
    const wanted = {
      ...rows,
      gradLogProbs: tensor(
        Array.from({ length: 4 }, () => Array.from({ length: 5 }, () => -1)),
        "float32",
      ),
    };
    const policy = await begunPolicy({ optim: { lr: 1e-3 } });
    const before = await policy.logProbs(rows);
    const sum = ({ data }: Tensor): number => Array.from(data).reduce((a, b) => a + b, 0);
    await policy.update(wanted);
    expect(sum((await policy.logProbs(rows)).logProbs)).toBeGreaterThan(sum(before.logProbs));
    const other = await begunPolicy({ optim: { lr: 1e-3 } });
    const none = {
      ...wanted,
      gradLogProbs: tensor(
        Array.from({ length: 4 }, () => [0, 0, 0, 0, 0]),
        "float32",
      ),
    };
    await other.update({ ...none, gradEntropys: wanted.gradLogProbs });
    expect(sum((await other.logProbs(rows)).entropys)).toBeGreaterThan(sum(before.entropys));
  });

  test("is the same in parts of any size, and rows without a gradient change nothing", async () => {
    const many: [string, string][] = Array.from({ length: 13 }, (_, i) => [
      "ab=",
      i % 2 ? "ba" : "abc",
    ]);
    const all = textRows(...many);
    const slopes = noise([13, 3], 4);
    slopes.data.fill(0, 0, 12);
    const whole = await begunPolicy({ microBatchRows: 16 });
    const parts = await begunPolicy({ microBatchRows: 2 });
    const some = await begunPolicy();
    const { gradNorm } = await whole.update({ ...all, gradLogProbs: slopes });
    const inParts = await parts.update({ ...all, gradLogProbs: slopes });
    const { gradNorm: ofSome } = await some.update({
      ...textRows(...many.slice(4)),
      gradLogProbs: { ...slopes, shape: [9, 3], data: slopes.data.slice(12) },
    });
    expect(inParts.gradNorm / gradNorm).toBeCloseTo(1, 5);
    expect(ofSome / gradNorm).toBeCloseTo(1, 5);
    expect(gradNorm).toBeGreaterThan(0);
  });

  test("says the learning rate that it had, which goes on when the schedule is to", async () => {
    const optim = { lr: 1, lrSchedulerType: "linear", totalTrainingSteps: 4 } as const;
    const policy = await begunPolicy({ optim });
    const lrs: number[] = [];
    for (const stepsSchedule of [false, true, false, true]) {
      const slopes = noise(shape, 1);
      lrs.push((await policy.update({ ...rows, gradLogProbs: slopes, stepsSchedule })).lr);
    }
    expect(lrs).toEqual([1, 1, 0.75, 0.75]);
    expect((await policy.state()).version).toBe(4);
  });

  test("one without anything to learn leaves weights and moments as they are, and the learning rate goes on", async () => {
    const optim = { lr: 1, lrSchedulerType: "linear", totalTrainingSteps: 4 } as const;
    const policy = await begunPolicy({ optim });
    await policy.update({ ...rows, gradLogProbs: noise(shape, 1) });
    const before = await policy.state();
    const nothing = { ...rows, gradLogProbs: noise(shape, 0), learns: false };
    expect(await policy.update({ ...nothing, stepsSchedule: false })).toEqual({
      gradNorm: 0,
      lr: 0.75,
    });
    expect(bitsOf(await policy.state())).toBe(bitsOf(before));
    expect((await policy.update(nothing)).lr).toBe(0.75);
    const { scheduleSteps, ...optimizer } = (await policy.state()).optimizer;
    expect(scheduleSteps).toEqual(Float32Array.of(2));
    expect(bitsOf({ ...(await policy.state()), optimizer: { ...before.optimizer } })).toBe(
      bitsOf(before),
    );
    expect({ ...optimizer, scheduleSteps: before.optimizer["scheduleSteps"] }).toEqual(
      before.optimizer,
    );
  });

  test("a gradient that is not finite is refused, and nothing has changed", async () => {
    const policy = await begunPolicy();
    const before = bitsOf(await policy.state());
    const slopes = noise(shape, 1);
    slopes.data[0] = Number.NaN;
    expect(await inputOf(() => policy.update({ ...rows, gradLogProbs: slopes }))).toBe(
      "gradLogProbs",
    );
    expect(bitsOf(await policy.state())).toBe(before);
  });
});

describe("state", () => {
  const rows = textRows(["ab=", "ba"], ["cd=", "dc"]);

  async function goOn(policy: TinyPolicy): Promise<string> {
    const request = { prompts: asked("ab=", "c="), n: 3, maxResponseLength: 5 };
    const texts = (await answersOf(policy, request)).map(({ response }) => response);
    await policy.update({ ...rows, gradLogProbs: noise([2, 2], 6) });
    return [...texts, bitsOf(await policy.state())].join("\n");
  }

  test("put into another policy goes on bit by bit, draws and schedule included", async () => {
    const optim = { lrSchedulerType: "cosine", totalTrainingSteps: 9, lrWarmupSteps: 2 } as const;
    const policy = new TinyPolicy({ ...small, optim });
    await policy.supervise({ pairs, steps: 3 });
    await goOn(policy);
    await goOn(policy);
    const kept = structuredClone(await policy.state());
    const other = new TinyPolicy({ ...small, optim, seed: small.seed! });
    await other.setState(kept);
    expect(bitsOf(await other.state())).toBe(bitsOf(kept));
    const next = await goOn(policy);
    expect(await goOn(other)).toBe(next);
    // And the same run from its start comes to the same.
    const again = new TinyPolicy({ ...small, optim });
    await again.supervise({ pairs, steps: 3 });
    await goOn(again);
    await goOn(again);
    expect(await goOn(again)).toBe(next);
  });

  test("after a supervised start the learning rate warms up, also where it goes on elsewhere", async () => {
    const optim = { lr: 1e-2 };
    const lrOf = async (policy: TinyPolicy): Promise<number> =>
      (await policy.update({ ...rows, gradLogProbs: noise([2, 2], 6) })).lr;
    expect(await lrOf(new TinyPolicy({ ...small, optim }))).toBe(1e-2);
    const policy = new TinyPolicy({ ...small, optim });
    await policy.supervise({ pairs, steps: 1 });
    const supervised = await policy.state();
    expect(await lrOf(policy)).toBeCloseTo(1e-2 / 20, 10);
    const other = new TinyPolicy({ ...small, optim });
    await other.setState(await policy.state());
    expect(await lrOf(other)).toBeCloseTo(2e-2 / 20, 10);
    // A state of an earlier version has the moments of the supervised start alone.
    const { supervised: _, ...optimizer } = supervised.optimizer;
    await other.setState({ ...supervised, optimizer });
    expect(await lrOf(other)).toBeCloseTo(1e-2 / 20, 10);
    await other.setState({ ...supervised, optimizer: {} });
    expect(await lrOf(other)).toBe(1e-2);
  });

  test.each<[string, Partial<TinySettings>, RegExp]>([
    ["alphabet", { alphabet: "abcx=" }, /train_files.*"abcd=": it lacks "d" and has "x" besides/],
    ["alphabet", { alphabet: "abcd" }, /lacks "="/],
    ["alphabet", { alphabet: "bacd=" }, /in another order/],
    ["separator", { separator: "=" }, /separator/],
    ["heads", { heads: 4 }, /is 4, and the weights were learned with 2/],
    ["layers", { layers: 1 }, /is 1, and the weights were learned with 2/],
  ])(
    "learned with other settings is refused by their name: %s %j",
    async (input, settings, message) => {
      const kept = await new TinyPolicy(small).state();
      const other = new TinyPolicy({ ...small, ...settings });
      const before = bitsOf(await other.state());
      await expect(other.setState(kept)).rejects.toMatchObject({
        name: "TrainerInputError",
        input,
        message: expect.stringMatching(message),
      });
      expect(bitsOf(await other.state())).toBe(before);
    },
  );

  test("of an earlier version, which says nothing about its settings, is taken as it is", async () => {
    const { optimizer, ...kept } = await new TinyPolicy(small).state();
    const older = Object.entries(optimizer).filter(([name]) => !name.startsWith("settings."));
    const policy = new TinyPolicy(small);
    await policy.setState({ ...kept, optimizer: Object.fromEntries(older) });
    expect(bitsOf(await policy.state())).toBe(bitsOf({ ...kept, optimizer }));
  });

  test("in the middle of a warm start goes on with it", async () => {
    const policy = new TinyPolicy(small);
    const all = await policy.supervise({ pairs, steps: 4 });
    const first = new TinyPolicy(small);
    const losses = [...(await first.supervise({ pairs, steps: 2 })).losses];
    const second = new TinyPolicy(small);
    await second.setState(await first.state());
    losses.push(...(await second.supervise({ pairs, steps: 2 })).losses);
    expect(losses).toEqual([...all.losses]);
    expect(bitsOf(await second.state())).toBe(bitsOf(await policy.state()));
  });

  test("is a copy, and does not share memory with what it was set from", async () => {
    const policy = await begunPolicy();
    const state = await policy.state();
    const kept = bitsOf(state);
    await policy.setState(state);
    for (const weights of Object.values(state.weights)) weights.fill(0);
    expect(bitsOf(await policy.state())).toBe(kept);
    (await policy.state()).weights["head"]!.fill(0);
    expect(bitsOf(await policy.state())).toBe(kept);
  });

  test("of another model is refused, and nothing has changed", async () => {
    const policy = await begunPolicy();
    const before = await policy.state();
    const wider = await new TinyPolicy({ ...small, width: 32 }).state();
    const { head: _, ...headless } = before.weights;
    const wrong: Readonly<Record<string, PolicyState>> = {
      width: wider,
      // As states of earlier versions, without settings.
      weights: { ...wider, optimizer: {} },
      weights2: { ...before, weights: headless },
      weights3: { ...before, weights: { ...before.weights, tail: new Float32Array(1) } },
      optimizer: { ...before, optimizer: { "adam.steps": Float32Array.of(1) } },
      optimizer2: {
        ...before,
        optimizer: { ...before.optimizer, "adam.steps": Float32Array.of(-1) },
      },
      version: { ...before, version: 0.5 },
    };
    for (const [name, state] of Object.entries(wrong)) {
      expect(await inputOf(() => policy.setState(state)), name).toBe(name.replace(/\d/, ""));
      expect(bitsOf(await policy.state())).toBe(bitsOf(before));
    }
  });
});

test("a warm start learns its pairs by heart, and counts as no update", async () => {
  const policy = new TinyPolicy(small);
  const { losses } = await policy.supervise({ pairs, steps: 120, batchSize: 16, lr: 1e-2 });
  expect(losses[0]).toBeCloseTo(Math.log(6), 1);
  expect(losses.at(-1)).toBeLessThan(0.2);
  const greedy = await answersOf(policy, {
    prompts: pairs.map(({ prompt }) => prompt),
    maxResponseLength: 4,
    doSample: false,
  });
  expect(greedy.map(({ response }) => response)).toEqual(pairs.map(({ answer }) => answer));
  expect((await policy.state()).version).toBe(0);
});

test("bad input is named", async () => {
  const policy = await begunPolicy();
  const rows = textRows(["ab=", "ba"]);
  const data = (values: readonly number[], ...shape: number[]): Tensor =>
    asTensor(Int32Array.from(values), shape);
  const scored = (changes: Partial<TokenRows>) => () => policy.logProbs({ ...rows, ...changes });
  const asks = (changes: object) => () =>
    policy.generate({ prompts: asked("ab="), maxResponseLength: 4, ...changes });
  const made = (changes: Partial<TinySettings>) => () => new TinyPolicy({ ...small, ...changes });
  const slopes = noise([1, 2], 1);
  const cases: readonly (readonly [string, () => unknown])[] = [
    ["alphabet", made({ alphabet: "" })],
    ["alphabet", made({ alphabet: "aba" })],
    ["heads", made({ heads: 3 })],
    ["layers", made({ layers: 0 })],
    ["microBatchRows", made({ microBatchRows: 12 })],
    ["seed", made({ seed: 0.5 })],
    ["optim.lr", made({ optim: { lr: -1 } })],
    ["optim.betas", made({ optim: { betas: [0.9, 1] } })],
    ["optim.totalTrainingSteps", made({ optim: { lrSchedulerType: "cosine" } })],
    ["optim.totalTrainingSteps", made({ optim: { lrWarmupStepsRatio: 0.1 } })],
    ["alphabet", asks({ prompts: asked("xyz") })],
    ["prompts", asks({ prompts: asked("") })],
    ["n", asks({ n: 0 })],
    ["maxResponseLength", asks({ maxResponseLength: 14 })],
    ["maxResponseLength", asks({ maxResponseLength: Number.NaN })],
    ["temperature", asks({ temperature: -1 })],
    ["topP", asks({ topP: 0 })],
    ["topK", asks({ topK: 0 })],
    ["seed", asks({ seed: 0.1 })],
    ["attentionMask", scored({ attentionMask: data([1, 1, 1, 1], 1, 4) })],
    ["responses", scored({ responses: data([1, 1, 1, 1], 2, 2) })],
    ["responses", scored({ responses: data([1, 99], 1, 2) })],
    ["prompts", scored({ prompts: data([-1, 1, 1], 1, 3) })],
    ["prompts", scored({ attentionMask: data([1, 1, 0, 1, 1], 1, 5) })],
    ["temperature", scored({ temperature: 0 })],
    ["attentionMask", () => policy.logProbs(textRows(["abcdabcda", "abcdabcda"]))],
    ["gradLogProbs", () => policy.update({ ...rows, gradLogProbs: noise([2, 1], 1) })],
    [
      "gradEntropys",
      () => policy.update({ ...rows, gradLogProbs: slopes, gradEntropys: noise([1, 1], 1) }),
    ],
    ["pairs", () => policy.supervise({ pairs: [], steps: 1 })],
    ["steps", () => policy.supervise({ pairs, steps: 0 })],
    ["lr", () => policy.supervise({ pairs, steps: 1, lr: 0 })],
  ];
  for (const [input, action] of cases) {
    expect(await inputOf(async () => action()), action.toString()).toBe(input);
  }
});

test("messages are read as their contents, one after the other", async () => {
  const prompt = [
    { role: "system", content: "ab" },
    { role: "user", content: "c=" },
  ];
  const policy = new TinyPolicy(small);
  expect(await policy.promptLengths([prompt, prompt.slice(1)])).toEqual([4, 2]);
  const apart = new TinyPolicy({ ...small, separator: "d" });
  const [rollout] = await answersOf(apart, { prompts: [prompt], maxResponseLength: 1 });
  expect(tokenizer.decode(rollout!.promptIds)).toBe("abdc=");
  expect(await policy.describe()).toMatchObject({
    scoresTokens: true,
    trains: true,
    padTokenId: 0,
  });
});
