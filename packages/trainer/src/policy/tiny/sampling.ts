/** Samples one token from the model's scores. */

export interface DrawSettings {
  readonly doSample: boolean;
  /** Temperature, above 0. */
  readonly temperature: number;
  /** 1: all. */
  readonly topP: number;
  /** -1: all. */
  readonly topK: number;
}

export interface Draw {
  readonly token: number;
  /**
   * Over the whole vocabulary at this temperature, as `logProbs` has it, however few were to choose
   * from.
   */
  readonly logProb: number;
}

/**
 * @param logits before the temperature
 * @param uniform from 0 to below 1: what is drawn with
 */
export function drawToken(logits: Float32Array, settings: DrawSettings, uniform: number): Draw {
  const { doSample, temperature, topK, topP } = settings;
  let token = 0;
  // Plain loops: a step draws a thousand tokens, and functions for each score cost more than these.
  for (let i = 1; i < logits.length; i++) {
    if ((logits[i] ?? NaN) > (logits[token] ?? NaN)) token = i;
  }
  const highest = logits[token] ?? NaN;
  const chances = new Float64Array(logits.length);
  let total = 0;
  for (let i = 0; i < logits.length; i++) {
    const chance = Math.exp(((logits[i] ?? NaN) - highest) / temperature);
    chances[i] = chance;
    total += chance;
  }
  if (doSample) {
    const cut = topP < 1 || (topK > 0 && topK < logits.length);
    token = cut
      ? drawOf(likeliest(chances, topK, topP), chances, uniform)
      : drawOf(chances.keys(), chances, uniform, total);
  }
  const logProb = ((logits[token] ?? NaN) - highest) / temperature - Math.log(total);
  return { token, logProb };
}

/** The first of these at which their chances so far pass the drawn part of all of them. */
function drawOf(
  tokens: Iterable<number>,
  chances: Float64Array,
  uniform: number,
  total: number = Array.from(tokens, (token) => chances[token] ?? NaN).reduce((a, b) => a + b, 0),
): number {
  let left = uniform * total;
  let last = 0;
  for (const token of tokens) {
    const chance = chances[token] ?? NaN;
    if (chance === 0) continue;
    last = token;
    left -= chance;
    if (left < 0) return token;
  }
  // Rounding used up what was left.
  return last;
}

/**
 * The topK likeliest, and of these the fewest whose chances come to topP of theirs, at least one;
 * the likeliest first, among equals the lower id.
 */
function likeliest(chances: Float64Array, topK: number, topP: number): number[] {
  const sorted = [...chances.keys()].toSorted((a, b) => (chances[b] ?? NaN) - (chances[a] ?? NaN));
  const kept = topK > 0 ? sorted.slice(0, topK) : sorted;
  const total = kept.reduce((sum, token) => sum + (chances[token] ?? NaN), 0);
  let sum = 0;
  const end = kept.findIndex((token) => (sum += chances[token] ?? NaN) >= topP * total);
  return end === -1 ? kept : kept.slice(0, end + 1);
}
