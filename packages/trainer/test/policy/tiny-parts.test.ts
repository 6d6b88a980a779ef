/** The tiny policy's parts that need no network: what is drawn, how weights are moved, how fast. */

import { describe, expect, test } from "vitest";
import { adamWStep, noMoments } from "../../src/policy/tiny/optimizer/adamw.ts";
import {
  learningRateOf,
  optimizerSettingsOf,
} from "../../src/policy/tiny/optimizer/optimizer-settings.ts";
import type { OptimizerSettings } from "../../src/policy/tiny/optimizer/optimizer-settings.ts";
import { normalOf, uniformOf } from "../../src/values/random.ts";
import { powerOfTwo, widthFor } from "../../src/policy/tiny/rows.ts";
import { drawToken } from "../../src/policy/tiny/sampling.ts";

describe("a draw", () => {
  const logits = Float32Array.from([0.5, 0.1, 0.2, 0.2], Math.log);
  const all = { doSample: true, temperature: 1, topK: -1, topP: 1 };
  const drawn = (settings: object, uniforms: readonly number[]): number[] =>
    uniforms.map((uniform) => drawToken(logits, { ...all, ...settings }, uniform).token);

  test("takes each token in proportion to its chance", () => {
    expect(drawn({}, [0, 0.49, 0.51, 0.59, 0.61, 0.79, 0.81, 0.999999])).toEqual([
      0, 0, 1, 1, 2, 2, 3, 3,
    ]);
    // Squared: 25, 1, 4, 4 of 34.
    expect(drawn({ temperature: 0.5 }, [0.73, 0.74, 0.77, 0.9])).toEqual([0, 1, 2, 3]);
  });

  test("of the likeliest only, equals by their id", () => {
    expect(drawn({ topK: 2 }, [0, 0.71, 0.72, 0.999])).toEqual([0, 0, 2, 2]);
    expect(drawn({ topP: 0.6 }, [0, 0.71, 0.72, 0.999])).toEqual([0, 0, 2, 2]);
    // Of the three that are left, 0.5 / 0.9 is below 0.6.
    expect(drawn({ topK: 3, topP: 0.6 }, [0.71, 0.999])).toEqual([0, 2]);
    expect(drawn({ topP: 0.1 }, [0.999])).toEqual([0]);
    expect(drawn({ doSample: false }, [0.999])).toEqual([0]);
  });

  test("has the log-prob of the whole vocabulary at the temperature", () => {
    expect(drawToken(logits, { ...all, topK: 1 }, 0.3).logProb).toBeCloseTo(Math.log(0.5), 6);
    expect(drawToken(logits, { ...all, temperature: 0.5 }, 0).logProb).toBeCloseTo(
      Math.log(25 / 34),
      6,
    );
  });

  test("never takes what has no chance, whatever rounding leaves", () => {
    const last = Float32Array.of(0, -1e9, 0, -1e9);
    expect(drawToken(last, all, 1 - 2 ** -53).token).toBe(2);
  });
});

describe("random numbers", () => {
  test("are the same for the same keys, and spread evenly over others", () => {
    expect(uniformOf(1, 2, 3)).toBe(uniformOf(1, 2, 3));
    const counts = Array.from({ length: 16 }, () => 0);
    const keys = Array.from({ length: 100 }, (_, i) => i);
    for (const a of keys) for (const b of keys) counts[Math.floor(16 * uniformOf(7, a, b))]! += 1;
    // Chi squared with 15 degrees of freedom: 37.7 in one case of a thousand.
    expect(counts.reduce((sum, count) => sum + (count - 625) ** 2 / 625, 0)).toBeLessThan(37.7);
    const firsts = [0, -1, 1, 2 ** 32, 2 ** 40, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
    expect(new Set(firsts.map((seed) => uniformOf(seed))).size).toBe(firsts.length);
    const normal = keys.flatMap((a) => keys.map((b) => normalOf(a, b)));
    const mean = normal.reduce((sum, value) => sum + value, 0) / normal.length;
    const square = normal.reduce((sum, value) => sum + value * value, 0) / normal.length;
    expect(mean).toBeCloseTo(0, 1);
    expect(square).toBeCloseTo(1, 1);
  });
});

describe("AdamW", () => {
  const step = (
    values: readonly number[],
    slopes: readonly number[],
    more: OptimizerSettings = {},
  ) => {
    const weights = { a: Float32Array.from(values) };
    const settings = optimizerSettingsOf(more);
    const gradients = { a: Float32Array.from(slopes) };
    const moments = noMoments(weights);
    return { weights, result: adamWStep({ weights, gradients, moments, lr: 0.1, settings }) };
  };

  test("moves each weight by the learning rate at first, and draws it to 0", () => {
    const { weights, result } = step([1, -2], [0.3, -0.4], { weightDecay: 0.01 });
    expect(result.gradNorm).toBeCloseTo(0.5, 6);
    expect(result.weights["a"]![0]).toBeCloseTo(1 - 0.001 - 0.1, 5);
    expect(result.weights["a"]![1]).toBeCloseTo(-2 + 0.002 + 0.1, 5);
    expect([...weights.a]).toEqual([1, -2]);
  });

  test("remembers: the second step by hand", () => {
    const settings = optimizerSettingsOf({ weightDecay: 0, betas: [0.9, 0.99] });
    const first = adamWStep({
      weights: { a: Float32Array.of(0) },
      gradients: { a: Float32Array.of(0.5) },
      moments: noMoments({ a: Float32Array.of(0) }),
      lr: 0.1,
      settings,
    });
    const { moments, weights } = adamWStep({
      weights: first.weights,
      gradients: { a: Float32Array.of(-0.25) },
      moments: first.moments,
      lr: 0.1,
      settings,
    });
    // m: 0.05, then 0.045 - 0.025 = 0.02; v: 0.0025, then 0.002475 + 0.000625 = 0.0031.
    expect(moments.mean["a"]![0]).toBeCloseTo(0.02, 7);
    expect(moments.square["a"]![0]).toBeCloseTo(0.0031, 7);
    // -0.1, then 0.1 * (0.02 / 0.19) / sqrt(0.0031 / 0.0199) more.
    expect(weights["a"]![0]).toBeCloseTo(
      -0.1 - (0.1 * 0.02) / 0.19 / Math.sqrt(0.0031 / 0.0199),
      5,
    );
  });

  test("shortens a gradient that is too long, and leaves another as it is", () => {
    const long = step([0, 0], [30, -40], { clipGrad: 1 }).result;
    expect(long.gradNorm).toBeCloseTo(50, 4);
    expect(long.moments.mean["a"]![0]).toBeCloseTo(0.1 * 0.6, 6);
    expect(step([0, 0], [0.3, 0], { clipGrad: 1 }).result.moments.mean["a"]![0]).toBeCloseTo(
      0.03,
      6,
    );
  });
});

test.each<[string, OptimizerSettings, readonly number[]]>([
  ["constant", {}, [1, 1, 1]],
  ["warm-up", { lrWarmupSteps: 4 }, [0.25, 0.5, 0.75, 1, 1]],
  ["warm-up by ratio", { lrWarmupStepsRatio: 0.2, totalTrainingSteps: 10 }, [0.5, 1, 1]],
  ["linear", { lrSchedulerType: "linear", totalTrainingSteps: 4 }, [1, 0.75, 0.5, 0.25, 0, 0]],
  [
    "cosine",
    { lrSchedulerType: "cosine", totalTrainingSteps: 4, minLrRatio: 0.1, lrWarmupSteps: 2 },
    [0.5, 1, 1, 0.55, 0.1, 0.1],
  ],
  // The only step of a run learns, with a warm-up too.
  ["cosine of one step", { lrSchedulerType: "cosine", totalTrainingSteps: 1 }, [1, 0]],
  [
    "cosine of one step, which warms up",
    { lrSchedulerType: "cosine", totalTrainingSteps: 1, lrWarmupSteps: 1 },
    [1],
  ],
  // verl 0.9.1 uses these numbers in its updates.
  [
    "cosine, counted from 0",
    {
      lrSchedulerType: "cosine",
      totalTrainingSteps: 4,
      lrWarmupSteps: 1,
      zeroIndexedStep: true,
    },
    [0, 1, 0.75, 0.25, 0, 0],
  ],
  [
    "cosine, counted from 1",
    {
      lrSchedulerType: "cosine",
      totalTrainingSteps: 4,
      lrWarmupSteps: 1,
      zeroIndexedStep: false,
    },
    [1, 0.75, 0.25, 0, 0],
  ],
])("the learning rate of steps from the first on: %s", (_, settings, expected) => {
  const rate = learningRateOf(optimizerSettingsOf({ lr: 2, ...settings }), false);
  expected.forEach((factor, stepsBefore) => expect(rate(stepsBefore)).toBeCloseTo(2 * factor, 10));
});

test.each<[string, OptimizerSettings, readonly number[]]>([
  ["by default", {}, [0.05, 0.1]],
  ["in a run that is shorter", { totalTrainingSteps: 4 }, [0.05, 0.1, 0.15, 0.2, 0.2]],
  ["no warm-up by steps", { lrWarmupSteps: 0 }, [1, 1]],
  ["no warm-up by ratio", { lrWarmupStepsRatio: 0 }, [1, 1]],
  ["steps of one's own", { lrWarmupSteps: 2 }, [0.5, 1]],
])("the learning rate after a supervised start: %s", (_, settings, expected) => {
  const rate = learningRateOf(optimizerSettingsOf({ lr: 2, ...settings }), true);
  expected.forEach((factor, stepsBefore) => expect(rate(stepsBefore)).toBeCloseTo(2 * factor, 10));
});

test("shapes are few", () => {
  expect([0, 1, 2, 3, 6, 10, 15, 16, 17, 33, 64, 65].map(widthFor)).toEqual([
    2, 2, 2, 4, 6, 10, 16, 16, 20, 40, 64, 80,
  ]);
  expect([1, 2, 3, 5, 64, 65].map(powerOfTwo)).toEqual([1, 2, 4, 8, 64, 128]);
});
