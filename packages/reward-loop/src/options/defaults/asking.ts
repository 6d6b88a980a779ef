/**
 * Options of the client and of judges, which are functions of the user's code and know no loop.
 * These tables only check them, as those of `calls`; their types stand beside the functions.
 */

import {
  anyText,
  byName,
  choice,
  fn,
  list,
  number,
  option,
  own,
  section,
  signal,
  text,
  whole,
} from "../table.ts";
import { pricesOptions } from "./policies.ts";

const required = { isRequired: true };
/** Checked by its user, whose error says more, or shows no secret. */
const unchecked = option(own<unknown>(), undefined);

/** PostOptions. A time that is over is no mistake: what is left of a deadline may be nothing. */
export const postOptions = {
  headers: option(byName(own<string>()), undefined),
  timeoutMs: unchecked,
  signal: option(signal, undefined),
};

/** PostRequestOptions. */
export const postRequestOptions = {
  ...postOptions,
  maxRetries: unchecked,
  maxRetryAfterMs: option(number({ least: 0, infinite: true }), undefined),
  secondMs: option(number({ least: 0 }), undefined),
  check: option(fn, undefined),
};

const format = option(choice("json_schema", "json_object", "text"), undefined);
const model = option(text, undefined, required);
const body = option(byName(own<unknown>()), undefined);

/** ChatOptions that are the same for many chats. */
const chatSettings = {
  baseUrl: option(text, undefined, required),
  model,
  apiKey: unchecked,
  temperature: option(number(), undefined),
  maxTokens: option(whole(1), undefined),
  body,
  headers: postOptions.headers,
  again: option(list(choice("length", "content_filter")), undefined),
};

/** ChatOptions. */
export const chatOptions = {
  ...chatSettings,
  messages: option(list(own<object>()), undefined, required),
  timeoutMs: postOptions.timeoutMs,
  signal: postOptions.signal,
};

/** AskByChatOptions. */
export const askByChatOptions = {
  ...chatSettings,
  timeoutMs: option(number({ above: 0, infinite: true }), undefined),
  format,
};

/** AskByOpenAIOptions. */
export const askByOpenAIOptions = { model, body, format };

/** StructuredOptions. */
export const askForOptions = {
  messages: chatOptions.messages,
  schema: option(own<object>(), undefined, required),
  name: option(text, undefined),
  attempts: unchecked,
  signal: option(signal, undefined),
};

/** JudgeOptions, those of a comparison, too. */
export const judgeOptions = {
  ask: option(fn, undefined, required),
  prompt: option(anyText, undefined, required),
  system: option(anyText, undefined),
  attempts: unchecked,
  prices: option(section(pricesOptions), undefined),
};

export const structuredOptions = {
  ...judgeOptions,
  schema: askForOptions.schema,
  scoreOf: option(fn, undefined, required),
};

/** ChoiceOptions. */
export const choiceOptions = {
  ...judgeOptions,
  choices: option(byName(own<number | null>()), undefined, required),
};

/** Criterion. */
export const criterionOptions = {
  description: option(anyText, undefined, required),
  points: option(list(own<number>()), undefined),
  weight: unchecked,
};

/** RubricOptions. */
export const rubricOptions = {
  ...judgeOptions,
  criteria: option({ is: "byName", of: section(criterionOptions) }, undefined, required),
};
