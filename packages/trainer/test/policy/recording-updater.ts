/** An updater for tests: it notes what it was told to learn from, and where it is. */

import type {
  LogProbs,
  PolicyState,
  PolicyUpdate,
  PolicyUpdater,
  TokenRows,
} from "@rayling/trainer";

export function createUpdater({ lr = 1 }: { readonly lr?: number }): PolicyUpdater {
  let sum = 0;
  return {
    update({ gradLogProbs }: PolicyUpdate) {
      for (const slope of gradLogProbs.data) sum += slope;
      return { gradNorm: Math.abs(sum), lr };
    },
    logProbs({ responses }: TokenRows): LogProbs {
      const { shape, data } = responses;
      const logProbs = {
        dtype: "float32",
        shape,
        data: Float32Array.from(data, () => -1),
      } as const;
      return { logProbs, entropys: logProbs };
    },
    state: () => ({ weights: { sum: Float32Array.of(sum) }, optimizer: {} }),
    setState({ weights }: PolicyState) {
      sum = weights["sum"]![0]!;
    },
  };
}

/** Only updates: nobody can ask it for log-probs. */
export const createBlindUpdater = (): PolicyUpdater => ({
  update: ({ gradLogProbs }) => ({ gradNorm: Math.hypot(...gradLogProbs.data), lr: 1 }),
});

export const notAFunction = 1;

export const createNothing = (): object => ({});
