/** Settings of the quickstart, with where they come from. */

export const settings = {
  trainBatchSize: 32,
  n: 8,
  ppoMiniBatchSize: 32,
  /**
   * Four heads find the digits that belong together in half of the steps that two need; a second
   * layer adds nothing but its time. All of a batch is one chunk.
   */
  policy: { layers: 1, heads: 4, microBatchRows: 256 },
  lr: 4e-3,
  /** Steps in which the learning rate rises: that share of all, and never fewer than these. */
  lrWarmup: { ratio: 0.17, least: 11 },
  minLrRatio: 0,
  /**
   * Without it the policy is sure of its wrong answers, too, before it has tried others: a group
   * that is all wrong teaches nothing.
   */
  entropyCoeff: 0.001,
  /**
   * The ratio of the loss is to the policy that made the rollout, which is the step's own under
   * sync and one update older under one-step-off-policy: clipping then bounds how far old rollouts
   * can lead. Without it a learning rate like this one makes what is learned from old rollouts
   * collapse.
   */
  rolloutCorrection: { bypassMode: true },
  /** Rewards at a time. */
  slots: 32,
  /**
   * The warm start ends there: sampled, and greedy. Before it knows how to carry a one, greedy
   * stays below a half, and GRPO finds it out slowly.
   */
  warmAccuracy: { sampled: 0.33, greedy: 0.6 },
  /** Problems that it is asked on the way. */
  warmSteps: { each: 25, most: 1500, problems: 256 },
  /**
   * Waiting over computing in the published 7B baseline: 427 s of rewards over 238 s of generation,
   * log-probabilities and update. Where the time is short it may be the least.
   */
  waitPerCompute: 1.794,
  leastWaitPerCompute: 1,
  /** Steps that are thrown away, and measured. */
  calibration: { warm: 3, measured: 5 },
  /** Steps under each schedule, where the machine's speed decides. */
  steps: { least: 70, most: 200 },
  /** Limits: for all of it, and for the training where the machine is fast. */
  seconds: { all: 75, training: 52 },
  /** Expected to come on top: tests, threads that start, a machine that slows down. */
  margin: { factor: 1.15, seconds: 3 },
} as const;
