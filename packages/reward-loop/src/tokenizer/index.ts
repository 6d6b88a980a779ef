/**
 * A tokenizer of Hugging Face's format, from a local folder with tokenizer.json and tokenizer_config.json: public names of @rayling/reward-loop/tokenizer.
 * Its chat template may be in the configuration or in a file of its own (chat_template.jinja). Nothing is fetched.
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Template } from "@huggingface/jinja";
import { Tokenizer as HuggingFace } from "@huggingface/tokenizers";
import type { Tokenizer } from "@rayling/reward-manager-registry";
import { TokenizerFolderError } from "../errors.ts";

export interface ChatMessage {
  readonly role: string;
  readonly content: unknown;
  readonly [key: string]: unknown;
}

export interface ChatTemplateOptions {
  /** Ends with the beginning of an assistant's message. Default false. */
  readonly addGenerationPrompt?: boolean;
  /** Further values of the template. */
  readonly values?: Readonly<Record<string, unknown>>;
}

export interface ChatTokenizer extends Tokenizer {
  decode(ids: ArrayLike<number>, options: { readonly skipSpecialTokens: boolean }): string;
  encode(text: string, options?: { readonly addSpecialTokens?: boolean }): number[];
  /** Throws Error where the model has no chat template, or the template refuses the messages. */
  applyChatTemplate(messages: readonly ChatMessage[], options?: ChatTemplateOptions): string;
  readonly eosToken: string | undefined;
  readonly bosToken: string | undefined;
}

/** A folder of a model. What the loop calls for `tokenizer: { path: "pkg:@rayling/reward-loop/tokenizer", rewardKwargs: { path } }`, or for the folder by itself. Rejects with TokenizerFolderError. */
export async function createTokenizer({ path }: { readonly path: string }): Promise<ChatTokenizer> {
  const [model, config] = await Promise.all([
    jsonOf(path, "tokenizer.json"),
    jsonOf(path, "tokenizer_config.json"),
  ]);
  const tokenizer = new HuggingFace(model, config);
  const [eosToken, bosToken] = [textOf(config["eos_token"]), textOf(config["bos_token"])];
  const template = await templateOf(path, config);
  return {
    eosToken,
    bosToken,
    decode: (ids, { skipSpecialTokens }) =>
      ids.length === 0
        ? ""
        : tokenizer.decode(Array.from(ids), { skip_special_tokens: skipSpecialTokens }),
    encode: (text, { addSpecialTokens = true } = {}) =>
      tokenizer.encode(text, { add_special_tokens: addSpecialTokens }).ids,
    applyChatTemplate(messages, { addGenerationPrompt = false, values } = {}) {
      if (template === undefined) throw new Error(`the model in ${path} has no chat template`);
      return template.render({
        messages,
        add_generation_prompt: addGenerationPrompt,
        eos_token: eosToken,
        bos_token: bosToken,
        ...values,
      });
    },
  };
}

async function jsonOf(folder: string, file: string): Promise<Record<string, unknown>> {
  try {
    return JSON.parse(await readFile(join(folder, file), "utf8")) as Record<string, unknown>;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const problem = code === "ENOENT" ? `no ${file} is there` : `${file}: ${message}`;
    throw new TokenizerFolderError(folder, problem, { cause: error });
  }
}

/** A token is a text or { content }. */
function textOf(token: unknown): string | undefined {
  if (typeof token === "string") return token;
  const content = (token as { readonly content?: unknown } | null | undefined)?.content;
  return typeof content === "string" ? content : undefined;
}

async function templateOf(
  path: string,
  { chat_template: own }: Readonly<Record<string, unknown>>,
): Promise<Template | undefined> {
  const text = await readFile(join(path, "chat_template.jinja"), "utf8").catch(() => chosenOf(own));
  return text === undefined ? undefined : new Template(text);
}

/** One text, or several by name. */
function chosenOf(template: unknown): string | undefined {
  if (typeof template === "string") return template;
  if (!Array.isArray(template)) return undefined;
  const named = template as readonly { readonly name?: string; readonly template?: string }[];
  return (named.find(({ name }) => name === "default") ?? named[0])?.template;
}
