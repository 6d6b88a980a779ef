/**
 * Question: what does a policy loss with its gradient cost, and what an advantage, against the
 * exponentials that its formula cannot do without? A batch of 1,280 rows of up to 512 tokens: 256
 * prompts x 5, a mini-batch of the recorded runs.
 *
 * The floor is one exponential of each token that counts, added up, and nothing else. A formula
 * needs as many of them as the tables below say; one without exponentials is held to one.
 */
import type { Tensor } from "@rayling/data-proto";
import {
  type AdvantageBatch,
  createAdvantageRegistry,
  createPolicyLossRegistry,
  type PolicyLossBatch,
} from "@rayling/trainer";
import { cpuRatio, figureOf, type Measured, type Section, tableOf } from "./measure/figures.ts";
import { interleave, type RoundPlan } from "./measure/interleave.ts";
import type { Progress, Report, Table } from "./measure/report.ts";

const rows = 1280;
const columns = 512;
const tokens = rows * columns;
const floor = "exp of each token that counts";

/**
 * Exponentials and logarithms of each token that counts. An exponential that one pass names twice
 * counts once, and so does its square.
 */
const ofLosses: Readonly<Record<string, number>> = {
  vanilla: 1,
  // Both probabilities and the ratio.
  dppo_tv: 3,
  // And the logarithm of the divergence.
  dppo_kl: 4,
  // One of each row.
  gspo: 0,
  // The ratio and the gate.
  sapo: 2,
  gpg: 0,
  clip_cov: 1,
  kl_cov: 1,
  // One of each row.
  geo_mean: 0,
  dro: 0,
  cispo: 1,
  // The ratio of the correction, which is the weight and in k3, too, and whose square is in chi2;
  // that of the loss, which must know the corrected mask first.
  bypass_mode: 2,
  // The ratio and the weight.
  decoupled: 2,
};

const ofAdvantages: Readonly<Record<string, number>> = {
  gae: 0,
  grpo: 0,
  grpo_vectorized: 0,
  grpo_passk: 0,
  rloo: 0,
  rloo_vectorized: 0,
  opo: 0,
  gpg: 0,
  remax: 0,
  reinforce_plus_plus: 0,
  reinforce_plus_plus_baseline: 0,
  gdpo: 0,
  // The probability of the token.
  optimal_token_baseline: 1,
  tir_optimal_token_baseline: 1,
};

const sectionOf = (id: string, what: string): Section => ({
  id,
  title: `${what}, ${rows} rows x ${columns} tokens`,
  reading: "time",
  perIteration: tokens,
  unit: "ms",
  floors: [floor],
});

export async function measureLosses(plan: RoundPlan, say: Progress): Promise<Report> {
  const batch = batchOf();
  const losses = createPolicyLossRegistry();
  const settings = {
    droBeta: 0.1,
    rolloutCorrection: { rolloutIs: "token", rolloutRs: "token_k1", rolloutRsThreshold: "0.5_2" },
  } as const;
  const rewarded = rewardedOf(batch);
  const advantages = createAdvantageRegistry();
  const passesOfLosses = passesOf(ofLosses, losses.names());
  const passesOfAdvantages = passesOf(ofAdvantages, advantages.names());
  const exponentials = { name: floor, run: () => verify(exponentialsOf(batch)) };
  const measured = await measuredOf(
    sectionOf("losses", "Policy losses with gradients"),
    plan,
    say,
    [
      exponentials,
      ...losses.names().map((name) => ({
        name,
        run: () => verify(losses.get(name)(batch, settings).loss),
      })),
    ],
  );
  const estimated = await measuredOf(sectionOf("advantages", "Advantages"), plan, say, [
    exponentials,
    ...advantages.names().map((name) => ({
      name,
      run: () => verify(advantages.get(name)(rewarded, keys).advantages.data[0]),
    })),
  ]);
  return {
    tables: [
      tableOf(measured),
      perToken(measured, passesOfLosses),
      tableOf(estimated),
      perToken(estimated, passesOfAdvantages),
    ],
    measured: {
      "losses: dearest x exp": dearest(measured, passesOfLosses),
      "advantages: dearest x exp": dearest(estimated, passesOfAdvantages),
    },
    details: [measured, estimated],
  };
}

type Passes = ReadonlyMap<string, number>;

/** Returns how many passes of the floor each name is held to: at least one. */
function passesOf(counts: Readonly<Record<string, number>>, names: readonly string[]): Passes {
  return new Map(
    names.map((name) => {
      const count = Object.hasOwn(counts, name) ? counts[name] : undefined;
      if (count === undefined)
        throw new Error(`bench/losses.ts: how many exponentials has ${name}?`);
      return [name, Math.max(1, count)];
    }),
  );
}

function exponentialsOf({ logProb, responseMask }: PolicyLossBatch): number {
  let sum = 0;
  for (let row = 0; row < rows; row++) sum += exponentialsIn(row, logProb.data, responseMask.data);
  return sum;
}

/** A function of its own, so that V8 makes the best of it: a long loop is a quarter slower. */
function exponentialsIn(row: number, values: Tensor["data"], mask: Tensor["data"]): number {
  let sum = 0;
  for (let at = row * columns; at < (row + 1) * columns; at++) {
    if (mask[at] !== 0) sum += Math.exp(values[at]!);
  }
  return sum;
}

/** By CPU time, which moves less than the clock. */
function toPasses(measured: Measured, name: string, passes: Passes): number {
  return cpuRatio(measured, name, floor) / (passes.get(name) ?? 1);
}

function dearest(measured: Measured, passes: Passes): number {
  return Math.max(...[...passes.keys()].map((name) => toPasses(measured, name, passes)));
}

async function measuredOf(
  section: Section,
  plan: RoundPlan,
  say: Progress,
  contestants: Parameters<typeof interleave>[0],
): Promise<Measured> {
  const samples = await interleave(contestants, plan, (round) =>
    say(`${section.title}: round ${round}`),
  );
  return { ...section, figures: samples.map(figureOf) };
}

function perToken(measured: Measured, passes: Passes): Table {
  const cells = measured.figures.map(({ name, cpuMs }) => [
    name,
    ((cpuMs * 1e6) / tokens).toFixed(1),
    String(passes.get(name) ?? 1),
    toPasses(measured, name, passes).toFixed(2),
  ]);
  return {
    title: `${measured.title}: CPU time per token`,
    rows: [["", "ns", "exponentials", "x its exponentials"], ...cells],
  };
}

async function verify(value: number | undefined): Promise<void> {
  if (value === undefined || Number.isNaN(value)) throw new Error(`a loss is ${value}`);
}

/** Rows of 50 to 512 tokens, always the same. */
function batchOf(): PolicyLossBatch {
  const wave = (at: number): number => Math.abs(Math.sin(12.9898 * at) * 43758.5453) % 1;
  const matrix = (value: (row: number, column: number, at: number) => number): Tensor => ({
    dtype: "float32",
    shape: [rows, columns],
    data: Float32Array.from({ length: tokens }, (_, at) =>
      value(Math.floor(at / columns), at % columns, at),
    ),
  });
  const isToken = (row: number, column: number): boolean => column < 50 + 462 * wave(row);
  return {
    oldLogProb: matrix((_row, _column, at) => -3 * wave(at)),
    rolloutLogProbs: matrix((_row, _column, at) => -3 * wave(at) + 0.1 * (wave(at + 0.25) - 0.5)),
    logProb: matrix((_row, _column, at) => -3 * wave(at) + 0.3 * (wave(at + 0.5) - 0.5)),
    advantages: matrix((row, column) => (isToken(row, column) ? 2 * wave(row + 0.5) - 1 : 0)),
    responseMask: matrix((row, column) => (isToken(row, column) ? 1 : 0)),
  };
}

const keys = { gdpoRewardKeys: ["right", "short"] } as const;

/** The same rows with a reward at the last token of each, and what some estimators need besides. */
function rewardedOf({
  logProb,
  oldLogProb,
  responseMask,
  advantages,
}: PolicyLossBatch): AdvantageBatch {
  const rewards = new Float32Array(tokens);
  const scores = Array.from({ length: rows }, (_, row) =>
    Math.sign(advantages.data[row * columns]!),
  );
  for (const [row, score] of scores.entries()) {
    const length = responseMask.data.subarray(row * columns, (row + 1) * columns).lastIndexOf(1);
    rewards[row * columns + length] = score;
  }
  return {
    tokenLevelRewards: { dtype: "float32", shape: [rows, columns], data: rewards },
    responseMask,
    groups: scores.map((_, row) => Math.floor(row / 5)),
    values: advantages,
    rewardBaselines: { dtype: "float32", shape: [rows], data: Float32Array.from(scores) },
    oldLogProbs: oldLogProb,
    sumPiSquared: {
      dtype: "float32",
      shape: [rows, columns],
      data: Float32Array.from(logProb.data, Math.exp),
    },
    rewardComponents: { right: scores, short: scores.map((score) => -score) },
  };
}
