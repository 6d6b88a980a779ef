/**
 * Answers of the tiny policy, in chunks of rows that are decoded together. An answer is yielded
 * when its last token is sampled, together with those that end at the same token.
 *
 * A sample is a function of (seed, prompt, sample, token) and the scores: equal requests with equal
 * weights give equal answers.
 */

import { setImmediate } from "node:timers/promises";
import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";
import type { GenerateRequest, Rollout } from "../policy.ts";
import type { Decoding, Network, PromptChunk } from "./network/network.ts";
import type { Weights } from "./optimizer/adamw.ts";
import { uniformOf } from "../../values/random.ts";
import { powerOfTwo, widthFor } from "./rows.ts";
import { drawToken } from "./sampling.ts";
import type { DrawSettings } from "./sampling.ts";
import { requireCount } from "./tiny-settings.ts";
import { eosTokenId, padTokenId } from "./tokenizer.ts";
import type { CharTokenizer } from "./tokenizer.ts";

/** Rows that are decoded together; one prompt with more samples than that is decoded in parts. */
const maxRows = 256;

export interface GenerationPlan extends DrawSettings {
  readonly prompts: readonly Int32Array[];
  readonly samples: number;
  readonly maxResponseLength: number;
  readonly seed: number;
  readonly version: number;
}

/** @throws TrainerInputError that names what of the request cannot be done */
export function planGeneration(
  request: GenerateRequest,
  {
    tokenizer,
    contextLength,
    ...known
  }: {
    readonly tokenizer: CharTokenizer;
    readonly contextLength: number;
    readonly seed: number;
    readonly version: number;
  },
): GenerationPlan {
  const {
    n = 1,
    maxResponseLength,
    doSample = true,
    temperature = 1,
    topP = 1,
    topK = -1,
  } = request;
  const { seed = known.seed } = request;
  requireCount("n", n);
  requireCount("maxResponseLength", maxResponseLength);
  const checks = {
    temperature: temperature >= 0 && temperature < Infinity,
    topP: topP > 0 && topP <= 1,
    topK: topK === -1 || (Number.isSafeInteger(topK) && topK > 0),
    seed: Number.isSafeInteger(seed),
  };
  for (const [name, isRight] of Object.entries(checks)) {
    if (isRight) continue;
    const value: unknown = Reflect.get(request, name);
    throw new TrainerInputError(name, `${name} cannot be ${String(value)}`);
  }
  const prompts = request.prompts.map((messages) => tokenizer.encodeMessages(messages));
  const longest = Math.max(0, ...prompts.map(({ length }) => length));
  if (longest + maxResponseLength > contextLength) {
    throw new TrainerInputError(
      "maxResponseLength",
      `a prompt of ${longest} tokens and an answer of ${maxResponseLength} have no room in a context of ${contextLength}`,
    );
  }
  return {
    prompts,
    samples: n,
    maxResponseLength,
    // Without temperature there is nothing to draw.
    doSample: doSample && temperature > 0,
    temperature: temperature === 0 ? 1 : temperature,
    topP,
    topK,
    seed,
    version: known.version,
  };
}

export async function* generateRollouts(
  plan: GenerationPlan,
  {
    network,
    weights,
    tokenizer,
  }: {
    readonly network: Network;
    readonly weights: Weights;
    readonly tokenizer: CharTokenizer;
  },
): AsyncGenerator<readonly Rollout[], void, undefined> {
  for (const part of partsOf(plan)) {
    const chunk = promptChunk(plan, part);
    const decoding = network.decode(weights, chunk);
    try {
      for await (const finished of decodedRows(plan, part, decoding)) {
        yield finished.map((row) => rolloutOf(row, plan, tokenizer));
      }
    } finally {
      decoding.dispose();
    }
  }
}

/** Yields the rows of a part as they finish, those of one token together. */
async function* decodedRows(
  plan: GenerationPlan,
  part: Part,
  decoding: Decoding,
): AsyncGenerator<readonly Row[], void, undefined> {
  const rows = rowsOf(part);
  for (let step = 0; step < plan.maxResponseLength; step++) {
    const open = rows.filter((row) => !isFinished(row, plan));
    // At first there is one line of scores for each prompt, then one for each row.
    for (const row of open)
      draw(row, decoding.scores(step === 0 ? row.promptInPart : row.place), plan);
    const finished = open.filter((row) => isFinished(row, plan));
    if (finished.length > 0) yield finished;
    if (finished.length === open.length) return;
    // Lets finished answers leave the thread, and a cancellation arrive.
    await setImmediate();
    const tokens = new Int32Array(decoding.rows).fill(padTokenId);
    const positions = new Int32Array(decoding.rows);
    for (const { place, prompt, ids } of rows) {
      tokens[place] = ids[step] ?? padTokenId;
      positions[place] = present(plan.prompts[prompt], `prompt ${prompt}`).length + step;
    }
    decoding.next(tokens, positions);
  }
}

function draw(row: Row, scores: Float32Array, plan: GenerationPlan): void {
  const { prompt, sample, ids, logProbs } = row;
  const uniform = plan.doSample ? uniformOf(plan.seed, prompt, sample, ids.length) : 0;
  const { token, logProb } = drawToken(scores, plan, uniform);
  ids.push(token);
  logProbs.push(logProb);
}

function isFinished({ ids }: Row, { maxResponseLength }: GenerationPlan): boolean {
  return ids.at(-1) === eosTokenId || ids.length === maxResponseLength;
}

/** Prompts and samples that are decoded together. */
interface Part {
  readonly prompts: readonly number[];
  readonly samples: readonly number[];
}

interface Row {
  readonly prompt: number;
  readonly sample: number;
  /** The prompt's place in the part, and the row's. */
  readonly promptInPart: number;
  readonly place: number;
  readonly ids: number[];
  readonly logProbs: number[];
}

function* partsOf({ prompts, samples }: GenerationPlan): Generator<Part> {
  const together = 2 ** Math.max(0, Math.floor(Math.log2(maxRows / samples)));
  for (let start = 0; start < prompts.length; start += together) {
    const some = range(start, Math.min(start + together, prompts.length));
    for (let sample = 0; sample < samples; sample += maxRows) {
      yield { prompts: some, samples: range(sample, Math.min(sample + maxRows, samples)) };
    }
  }
}

function rowsOf({ prompts, samples }: Part): Row[] {
  return prompts.flatMap((prompt, promptInPart) =>
    samples.map((sample, i) => ({
      prompt,
      sample,
      promptInPart,
      place: promptInPart * samples.length + i,
      ids: [],
      logProbs: [],
    })),
  );
}

function promptChunk({ prompts, maxResponseLength }: GenerationPlan, part: Part): PromptChunk {
  const width = widthFor(Math.max(...prompts.map(({ length }) => length)));
  const size = powerOfTwo(part.prompts.length);
  const tokens = new Int32Array(size * width).fill(padTokenId);
  const positions = new Int32Array(size * width);
  const mask = new Float32Array(size * width);
  part.prompts.forEach((prompt, i) => {
    const ids = present(prompts[prompt], `prompt ${prompt}`);
    const start = (i + 1) * width - ids.length;
    tokens.set(ids, start);
    mask.fill(1, start, start + ids.length);
    ids.forEach((_, position) => (positions[start + position] = position));
  });
  const responseWidth = widthFor(maxResponseLength);
  return {
    tokens,
    positions,
    mask,
    prompts: size,
    width,
    times: part.samples.length,
    responseWidth,
  };
}

function rolloutOf(
  { prompt, sample, ids, logProbs }: Row,
  { prompts, version }: GenerationPlan,
  tokenizer: CharTokenizer,
): Rollout {
  return {
    prompt,
    sample,
    promptIds: present(prompts[prompt], `prompt ${prompt}`),
    responseIds: Int32Array.from(ids),
    response: tokenizer.decode(ids),
    rolloutLogProbs: Float32Array.from(logProbs),
    finishReason: ids.at(-1) === eosTokenId ? "stop" : "length",
    version,
  };
}

function range(start: number, end: number): number[] {
  return Array.from({ length: end - start }, (_, i) => start + i);
}
