/** What may stand at each key. It has no defaults: those are data, in presets/ppo_trainer.yaml. */

import { z } from "zod";
import type {
  ActorConfig,
  AlgorithmConfig,
  CriticConfig,
  DataConfig,
  OptimConfig,
  RaylingConfig,
  RolloutConfig,
  RunConfig,
  TrainerConfig,
} from "./trainer-config.ts";
import { loggerNames } from "./verl/spellings.ts";

const whole = z.number().int();
const count = whole.min(1);
const fromZero = whole.min(0);
const share = z.number().min(0).max(1);
const amount = z.number().min(0);
const positive = z.number().positive();
const text = z.string().min(1);
/** -1, or a number of steps or samples. */
const countOrNot = whole.refine((value) => value === -1 || value >= 1, "must be -1 or at least 1");
/** verl's -1, and 0, which it takes for the same. */
const frequency = whole.min(-1);
const topK = countOrNot;
const topP = positive.max(1);

const lossAggMode = z.enum([
  "token-mean",
  "token-sum",
  "seq-mean-token-sum",
  "seq-mean-token-sum-norm",
  "seq-mean-token-mean",
]);
const kl = z.enum([
  "kl",
  "k1",
  "abs",
  "mse",
  "k2",
  "low_var_kl",
  "k3",
  "kl+",
  "k1+",
  "abs+",
  "mse+",
  "k2+",
  "low_var_kl+",
  "k3+",
]);

const optim: z.ZodType<OptimConfig> = z.strictObject({
  clipGrad: positive,
  lr: amount,
  weightDecay: amount,
  betas: z.tuple([share, share]).readonly(),
  lrSchedulerType: z.enum(["constant", "cosine", "linear"]),
  lrWarmupSteps: whole.min(-1),
  lrWarmupStepsRatio: share,
  minLrRatio: share,
  numCycles: amount,
  totalTrainingSteps: countOrNot,
});

const actor: z.ZodType<ActorConfig> = z.strictObject({
  ppoMiniBatchSize: count,
  ppoEpochs: count,
  clipRatio: amount,
  clipRatioLow: amount.nullable(),
  clipRatioHigh: amount.nullable(),
  clipRatioC: z.number().gt(1),
  tauPos: positive,
  tauNeg: positive,
  lossAggMode,
  lossScaleFactor: count.nullable(),
  entropyCoeff: z.number(),
  useKlLoss: z.boolean(),
  klLossCoef: amount,
  klLossType: kl,
  policyLoss: z.strictObject({
    lossMode: text,
    clipCovRatio: share,
    clipCovLb: z.number(),
    clipCovUb: z.number(),
    klCovRatio: share,
    ppoKlCoef: amount,
    droBeta: positive.nullable(),
    behavImpWeightCap: positive,
  }),
  gradClip: positive,
  optim,
});

const rollout: z.ZodType<RolloutConfig> = z.strictObject({
  n: count,
  temperature: positive,
  topK,
  topP,
  doSample: z.literal(true, { error: "a policy learns of what it samples: must be true" }),
  promptLength: count,
  responseLength: count,
  valKwargs: z.strictObject({
    n: count,
    doSample: z.boolean(),
    temperature: amount,
    topK,
    topP,
  }),
});

const critic: z.ZodType<CriticConfig> = z.strictObject({
  enable: z.boolean().nullable(),
  ppoMiniBatchSize: count,
  ppoEpochs: count,
  cliprangeValue: amount,
  lossAggMode,
  gradClip: positive,
  optim,
});

const algorithm: z.ZodType<AlgorithmConfig> = z.strictObject({
  advEstimator: text,
  gamma: share,
  lam: share,
  normAdvByStdInGrpo: z.boolean(),
  useKlInReward: z.boolean(),
  klPenalty: kl,
  klCtrl: z.strictObject({
    type: z.enum(["fixed", "adaptive"]),
    klCoef: amount,
    horizon: positive,
    targetKl: positive,
  }),
  filterGroups: z.strictObject({
    enable: z.boolean(),
    metric: text.nullable(),
    maxNumGenBatches: fromZero,
  }),
  rolloutCorrection: z.strictObject({
    rolloutIs: z.enum(["token", "sequence"]).nullable(),
    rolloutIsThreshold: z.union([positive, text]).nullable(),
    rolloutIsBatchNormalize: z.boolean(),
    rolloutRs: text.nullable(),
    rolloutRsThreshold: z.union([positive, text]).nullable(),
    bypassMode: z.boolean(),
    lossType: z.enum(["ppo_clip", "reinforce"]),
  }),
  usePfPpo: z.boolean(),
  pfPpo: z.strictObject({
    reweightMethod: z.enum(["pow", "max_min", "max_random"]),
    weightPow: positive,
  }),
  gdpoRewardKeys: z.array(text).readonly().nullable(),
  gdpoRewardWeights: z.array(z.number()).readonly().nullable(),
});

/** One, several, or null for none. */
const files = z
  .union([text.transform((one) => [one]), z.array(text), z.null().transform((): string[] => [])])
  .readonly();

const data: z.ZodType<DataConfig> = z.strictObject({
  trainFiles: files,
  valFiles: files,
  trainMaxSamples: countOrNot,
  valMaxSamples: countOrNot,
  promptKey: text,
  rewardFnKey: text,
  imageKey: text,
  videoKey: text,
  audioKey: text,
  maxPromptLength: count,
  maxResponseLength: count,
  trainBatchSize: count,
  shuffle: z.boolean(),
  seed: whole.nullable(),
  filterOverlongPrompts: z.boolean(),
  truncation: z.enum(["error", "left", "right", "middle"]),
});

const logger = z.enum(loggerNames);

const run: z.ZodType<RunConfig> = z.strictObject({
  totalEpochs: count,
  totalTrainingSteps: count.nullable(),
  projectName: text,
  experimentName: text,
  logger: z.union([logger.transform((one) => [one]), z.array(logger)]).readonly(),
  logValGenerations: fromZero,
  saveFreq: frequency,
  testFreq: frequency,
  overlapValidation: z.boolean().nullable(),
  valBeforeTrain: z.boolean(),
  valOnly: z.boolean(),
  criticWarmup: fromZero,
  resumeMode: z.enum(["auto", "disable", "resume_path"]),
  resumeFromPath: text.nullable(),
  defaultLocalDir: text,
  rolloutDataDir: text.nullable(),
  validationDataDir: text.nullable(),
  maxActorCkptToKeep: count.nullable(),
  maxCriticCkptToKeep: count.nullable(),
  policyTimeoutMs: count.max(2 ** 31 - 1),
});

const kwargs = z.record(z.string(), z.unknown());

const rayling: z.ZodType<RaylingConfig> = z.strictObject({
  policy: text,
  policyKwargs: kwargs,
  critic: text.nullable(),
  task: z.enum(["arithmetic"]).nullable(),
  taskKwargs: kwargs,
  warmStartSteps: fromZero,
  schedule: z.enum([
    "sync",
    "one-step-off-policy",
    "mini-batch-pipeline",
    "one-step-pipeline",
    "streaming",
  ]),
  staleness: z.strictObject({
    limit: fromZero,
    numWarmupBatches: fromZero.nullable(),
    strategy: z.enum(["wait", "drop"]),
  }),
  adaptiveMiniBatch: z.boolean(),
  batchBarrier: z.boolean(),
  validationInLine: z.boolean(),
  directory: text.nullable(),
  seed: fromZero.max(2 ** 31 - 1),
  metricsPort: fromZero.max(65_535).nullable(),
  expectedSeconds: z.strictObject({
    gen: amount.optional(),
    oldLogProb: amount.optional(),
    ref: amount.optional(),
    values: amount.optional(),
    adv: amount.optional(),
    updateActor: amount.optional(),
    updateCritic: amount.optional(),
    testing: amount.optional(),
    saveCheckpoint: amount.optional(),
    reward: z.union([amount, z.tuple([amount, amount]).readonly()]).optional(),
  }),
});

/** All but what is read elsewhere. */
export const configSchema: z.ZodType<
  Omit<TrainerConfig, "reward" | "ignored" | "notes" | "notDone">
> = z.strictObject({
  actorRolloutRef: z.strictObject({ actor, rollout }),
  critic,
  algorithm,
  data,
  maxConcurrency: count.nullable(),
  trainer: run,
  rayling,
});
