/**
 * Question: what does a policy loss with its gradient cost per token, and what an advantage,
 * against the exponential of each token that most losses cannot do without? A batch of 1,280 rows
 * of up to 512 tokens: 256 prompts x 5, a mini-batch of the recorded runs.
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
const floor = "exp of each token";

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
  const exponentials = {
    name: floor,
    run: () => verify(batch.logProb.data.map(Math.exp)[0]),
  };
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
  const rewarded = rewardedOf(batch);
  const advantages = createAdvantageRegistry();
  const estimated = await measuredOf(sectionOf("advantages", "Advantages"), plan, say, [
    exponentials,
    ...advantages.names().map((name) => ({
      name,
      run: () => verify(advantages.get(name)(rewarded, keys).advantages.data[0]),
    })),
  ]);
  const dearest = (all: Measured): number =>
    Math.max(...all.figures.map(({ name }) => cpuRatio(all, name, floor)));
  return {
    tables: [measured, estimated].flatMap((one) => [tableOf(one), perToken(one)]),
    measured: {
      "losses: dearest x exp": dearest(measured),
      "advantages: dearest x exp": dearest(estimated),
    },
    details: [measured, estimated],
  };
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

/** By CPU time, which moves less than the clock. */
function perToken({ title, figures }: Measured): Table {
  const cells = figures.map(({ name, cpuMs }) => [name, ((cpuMs * 1e6) / tokens).toFixed(1)]);
  return { title: `${title}: CPU time per token`, rows: [["", "ns"], ...cells] };
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
