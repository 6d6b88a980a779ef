/**
 * The forward pass of the tiny transformer on jax-js: token and position embeddings, layers of
 * attention and feed-forward with their norms before them (RMS), a head.
 *
 * jax-js counts references: whatever takes an array uses it up, `.ref` keeps it for one more use.
 * Each function here uses up all of the arrays that it is given. Embeddings are products with
 * one-hot rows, which `jit` puts into one kernel: gradients of an indexed read cannot be compiled.
 */

import { nn, numpy as np } from "@jax-js/jax";
import { present } from "@rayling/reward-manager-registry/values";
import type { Architecture } from "./initial-weights.ts";

export type Arrays = Record<string, np.Array>;

/** A type, not an interface: jax-js takes only these for a tree of arrays. */
export type TokenInputs = {
  /** Ids, [rows, tokens]. */
  readonly tokens: np.Array;
  /** Position of each token among those that count, [rows, tokens]. */
  readonly positions: np.Array;
  /** 1 for each token that counts, [rows, tokens]. */
  readonly mask: np.Array;
};

/**
 * Memory of one layer: keys [rows, heads, head width, tokens], values [rows, heads, tokens, head
 * width].
 */
export type KeysAndValues = { readonly keys: np.Array; readonly values: np.Array };

// Minus infinity would make a row of nothing else into NaN.
const never = -1e9;
const normEps = 1e-5;

/**
 * Returns the outputs at the last `count` tokens but `skip`, [rows, count, outputs], and the memory
 * of the layers. The last layer works on those tokens alone.
 */
export function runTokens(
  architecture: Architecture,
  weights: Arrays,
  { tokens, positions, mask }: TokenInputs,
  { count, skip }: { readonly count: number; readonly skip: number },
): { readonly outputs: np.Array; readonly memory: KeysAndValues[] } {
  const { layers, width } = architecture;
  const [rows = 0, length = 0] = tokens.shape;
  const asked: [number, number] = [length - skip - count, length - skip];
  const visible = np.tri(length, length).reshape([1, 1, length, length]);
  const allowed = visible.mul(mask.reshape([rows, 1, 1, length]));
  const barred = np.array(1).sub(allowed).mul(never);
  const memory: KeysAndValues[] = [];
  let stream = embed(architecture, weights, tokens, positions);
  for (let layer = 0; layer < layers; layer++) {
    let normed = rmsNorm(stream.ref, take(weights, `${layer}.attentionNorm`));
    const { keys, values } = keysAndValues(architecture, weights, layer, {
      normed: normed.ref,
      rows,
    });
    memory.push({ keys: keys.ref, values: values.ref });
    if (layer < layers - 1) {
      stream = runLayer(architecture, weights, layer, {
        stream,
        normed,
        keys,
        values,
        barred: barred.ref,
      });
      continue;
    }
    const those = (x: np.Array): np.Array =>
      x
        .reshape([rows, length, width])
        .slice([], asked)
        .reshape([rows * count, width]);
    stream = those(stream);
    normed = those(normed);
    const barredThere = barred.ref.slice([], [], asked);
    stream = runLayer(architecture, weights, layer, {
      stream,
      normed,
      keys,
      values,
      barred: barredThere,
    });
  }
  barred.dispose();
  return { outputs: head(architecture, weights, stream).reshape([rows, count, -1]), memory };
}

/**
 * Runs one more token of each row: returns its outputs, [rows, outputs], and the memory of the
 * layers with it.
 */
export function runNextToken(
  architecture: Architecture,
  weights: Arrays,
  memory: readonly KeysAndValues[],
  {
    tokens,
    positions,
    mask,
    slot,
  }: TokenInputs & {
    /** 1 at the place of this token in the memory, [tokens]. */
    readonly slot: np.Array;
  },
): { readonly outputs: np.Array; readonly memory: KeysAndValues[] } {
  const [rows = 0, length = 0] = mask.shape;
  const barred = np
    .array(1)
    .sub(mask.reshape([rows, 1, 1, length]))
    .mul(never);
  const next: KeysAndValues[] = [];
  let stream = embed(architecture, weights, tokens, positions);
  memory.forEach((before, layer) => {
    const normed = rmsNorm(stream.ref, take(weights, `${layer}.attentionNorm`));
    const own = keysAndValues(architecture, weights, layer, { normed: normed.ref, rows });
    // The slot is still empty: it is 0 there.
    const keys = before.keys.add(own.keys.mul(slot.ref.reshape([1, 1, 1, length])));
    const values = before.values.add(own.values.mul(slot.ref.reshape([1, 1, length, 1])));
    next.push({ keys: keys.ref, values: values.ref });
    stream = runLayer(architecture, weights, layer, {
      stream,
      normed,
      keys,
      values,
      barred: barred.ref,
    });
  });
  barred.dispose();
  slot.dispose();
  return { outputs: head(architecture, weights, stream), memory: next };
}

/** Widens the memory to `length` tokens, and repeats each row `times` times. */
export function widenMemory(
  memory: readonly KeysAndValues[],
  { times, length }: { readonly times: number; readonly length: number },
): KeysAndValues[] {
  const widened = (array: np.Array, axis: 2 | 3): np.Array => {
    const [rows = 0, ...rest] = array.shape;
    const free = length - (array.shape[axis] ?? NaN);
    const padded = np.pad(array.reshape([rows, 1, ...rest]), { [axis + 1]: [0, free] });
    const [, , ...shape] = padded.shape;
    return np.broadcastTo(padded, [rows, times, ...shape]).reshape([rows * times, ...shape]);
  };
  return memory.map(({ keys, values }) => ({ keys: widened(keys, 3), values: widened(values, 2) }));
}

/** [rows, ...] of whole numbers below `size` to [all of them, size] of 0 and 1. */
export function oneHot(ids: np.Array, size: number): np.Array {
  return np.equal(ids.reshape([-1, 1]), np.arange(size).reshape([1, size])).astype(np.float32);
}

function embed(
  { vocabularySize, contextLength }: Architecture,
  weights: Arrays,
  tokens: np.Array,
  positions: np.Array,
): np.Array {
  const byToken = np.matmul(oneHot(tokens, vocabularySize), take(weights, "tokens"));
  return byToken.add(np.matmul(oneHot(positions, contextLength), take(weights, "positions")));
}

function keysAndValues(
  { width, heads }: Architecture,
  weights: Arrays,
  layer: number,
  { normed, rows }: { readonly normed: np.Array; readonly rows: number },
): KeysAndValues {
  const both = np
    .matmul(normed, take(weights, `${layer}.keyValue`))
    .reshape([rows, -1, 2, heads, width / heads]);
  return {
    keys: np.transpose(both.ref.slice([], [], 0), [0, 2, 3, 1]),
    values: np.transpose(both.slice([], [], 1), [0, 2, 1, 3]),
  };
}

/**
 * Attention and feed-forward of the tokens in `stream`, [rows * tokens, width], each added to it.
 */
function runLayer(
  { width, heads }: Architecture,
  weights: Arrays,
  layer: number,
  {
    stream,
    normed,
    keys,
    values,
    barred,
  }: KeysAndValues & {
    readonly stream: np.Array;
    readonly normed: np.Array;
    /** Penalty of the tokens that each token may not see, [rows, 1, tokens, tokens seen]. */
    readonly barred: np.Array;
  },
): np.Array {
  const rows = keys.shape[0] ?? NaN;
  const queries = np
    .matmul(normed, take(weights, `${layer}.query`))
    .reshape([rows, -1, heads, width / heads]);
  const scores = np.matmul(np.transpose(queries, [0, 2, 1, 3]), keys);
  const shares = nn.softmax(scores.mul(1 / Math.sqrt(width / heads)).add(barred), -1);
  const seen = np.transpose(np.matmul(shares, values), [0, 2, 1, 3]).reshape([-1, width]);
  const attended = stream.add(np.matmul(seen, take(weights, `${layer}.attentionOut`)));
  const inner = rmsNorm(attended.ref, take(weights, `${layer}.feedForwardNorm`));
  const active = nn.gelu(np.matmul(inner, take(weights, `${layer}.feedForwardIn`)));
  return attended.add(np.matmul(active, take(weights, `${layer}.feedForwardOut`)));
}

/** [tokens, width] to [tokens, outputs]. */
function head(_: Architecture, weights: Arrays, stream: np.Array): np.Array {
  return np.matmul(rmsNorm(stream, take(weights, "norm")), take(weights, "head"));
}

/** @param scale what it has above 1 */
function rmsNorm(x: np.Array, scale: np.Array): np.Array {
  const size = np.sqrt(np.mean(np.square(x.ref), -1, { keepdims: true }).add(normEps));
  return x.div(size).mul(scale.add(1));
}

/** Each weight is used once in a pass, so nothing has to be kept. */
function take(weights: Arrays, name: string): np.Array {
  return present(weights[name], name);
}
