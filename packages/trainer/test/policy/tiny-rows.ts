/** Rows for tests of the tiny policy: a small model, and texts as the tensors that a trainer makes of them. */

import { asTensor } from "@rayling/data-proto";
import type { GenerateRequest, Policy, PolicyState, Rollout, TokenRows } from "@rayling/trainer";
import { CharTokenizer } from "@rayling/trainer/tiny";
import type { TinySettings } from "@rayling/trainer/tiny";

export const small: TinySettings = {
  alphabet: "abcd=",
  contextLength: 16,
  layers: 2,
  width: 16,
  heads: 2,
  seed: 3,
  microBatchRows: 8,
};

export const tokenizer: CharTokenizer = new CharTokenizer(small);

export const asked = (...texts: readonly string[]): GenerateRequest["prompts"] =>
  texts.map((content) => [{ role: "user", content }]);

/** Prompts padded on the left and responses on the right, to the longest or wider. */
export function rowsOf(
  pairs: readonly (readonly [prompt: Iterable<number>, response: Iterable<number>])[],
  { promptLength = 0, responseLength = 0 } = {},
): TokenRows {
  const all = pairs.map(([prompt, response]) => ({ prompt: [...prompt], response: [...response] }));
  const P = Math.max(promptLength, ...all.map(({ prompt }) => prompt.length));
  const R = Math.max(responseLength, ...all.map(({ response }) => response.length));
  const zeros = (count: number): number[] => Array.from({ length: count }, () => 0);
  const ones = (count: number): number[] => Array.from({ length: count }, () => 1);
  const flat = (rows: readonly number[][], width: number) =>
    asTensor(Int32Array.from(rows.flat()), [rows.length, width]);
  return {
    prompts: flat(
      all.map(({ prompt }) => [...zeros(P - prompt.length), ...prompt]),
      P,
    ),
    responses: flat(
      all.map(({ response }) => [...response, ...zeros(R - response.length)]),
      R,
    ),
    attentionMask: flat(
      all.map(({ prompt, response }) => [
        ...zeros(P - prompt.length),
        ...ones(prompt.length + response.length),
        ...zeros(R - response.length),
      ]),
      P + R,
    ),
  };
}

export const textRows = (...pairs: readonly (readonly [string, string])[]): TokenRows =>
  rowsOf(pairs.map(([prompt, response]) => [tokenizer.encode(prompt), tokenizer.encode(response)]));

/** In the order of prompts and samples. */
export async function answersOf(
  policy: Pick<Policy, "generate">,
  request: GenerateRequest,
): Promise<Rollout[]> {
  const rollouts: Rollout[] = [];
  for await (const some of policy.generate(request)) rollouts.push(...some);
  return rollouts.toSorted((a, b) => a.prompt - b.prompt || a.sample - b.sample);
}

/** All of it as one list of bits, to be compared. */
export function bitsOf({ version, weights, optimizer }: PolicyState): string {
  const parts = [...Object.entries(weights), ...Object.entries(optimizer)].map(
    ([name, { buffer, byteOffset, byteLength }]) =>
      `${name}:${Buffer.from(buffer, byteOffset, byteLength).toString("base64")}`,
  );
  return [version, ...parts].join("\n");
}
