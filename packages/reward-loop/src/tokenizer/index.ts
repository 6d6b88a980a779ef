/**
 * Public names of @rayling/reward-loop/tokenizer: a tokenizer of Hugging Face's format, from a
 * local folder with tokenizer.json and tokenizer_config.json. Chat templates render exactly as
 * transformers does, or throw an error (`../chat-template/`). Nothing is downloaded.
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Tokenizer as HuggingFace } from "@huggingface/tokenizers";
import { HubFileError, hubFolder, isHubPath } from "@rayling/data-proto";
import type { Tokenizer } from "@rayling/reward-manager-registry";
import { codeOf, messageOf, recordIn } from "@rayling/reward-manager-registry/values";
import { TokenizerFolderError } from "../errors.ts";
import { chatTemplatesOf } from "./chat-templates.ts";
import { specialTokensOf } from "./special-tokens.ts";
import { templateMessages } from "./template-messages.ts";

export { ChatTemplateError } from "../chat-template/error.ts";
export type { ChatTemplateErrorCode, ChatTemplateErrorFields } from "../chat-template/error.ts";

export interface ChatMessage {
  readonly role: string;
  readonly content: unknown;
  readonly [key: string]: unknown;
}

export interface ChatTemplateOptions {
  /** Ends with the beginning of an assistant's message. Default false. */
  readonly addGenerationPrompt?: boolean;
  /**
   * Further values of the template, as `tools` and `documents` (None where they are not given) or
   * `enable_thinking`. With tools, a model that has several templates is rendered
   * by its "tool_use".
   */
  readonly values?: Readonly<Record<string, unknown>>;
}

export interface ChatTokenizer extends Tokenizer {
  decode(ids: ArrayLike<number>, options: { readonly skipSpecialTokens: boolean }): string;
  encode(text: string, options?: { readonly addSpecialTokens?: boolean }): number[];
  /**
   * Returns the text that transformers 5 renders. As there, a key of a message whose value is null
   * (or undefined) is left out, and reasoning is under `reasoning_content` and `thinking`, by
   * whichever of these names or `reasoning` it is given. A whole number is an int.
   *
   * Throws ChatTemplateError: the model has no chat template, there are no messages, the template
   * refuses them, or needs what is not done here.
   */
  applyChatTemplate(messages: readonly ChatMessage[], options?: ChatTemplateOptions): string;
  readonly eosToken: string | undefined;
  readonly bosToken: string | undefined;
}

/**
 * Loads the tokenizer of a model's folder. The loop calls it for `tokenizer: { path:
 * "pkg:@rayling/reward-loop/tokenizer", rewardKwargs: { path } }`, and for the folder by itself.
 * `hf://OWNER/NAME` is a model of the Hugging Face Hub, whose files are copied into its cache.
 * Rejects with TokenizerFolderError.
 */
export async function createTokenizer({
  path: named,
}: {
  readonly path: string;
}): Promise<ChatTokenizer> {
  const path = isHubPath(named) ? await folderOf(named) : named;
  // One after the other: where both are missing, the error always names the same one.
  const model = await jsonOf(path, "tokenizer.json");
  const config = await jsonOf(path, "tokenizer_config.json");
  const tokenizer = new HuggingFace(model, config);
  const [tokens, templates] = await Promise.all([
    specialTokensOf(path, config),
    chatTemplatesOf(path, config),
  ]);
  return {
    eosToken: textIn(tokens["eos_token"]),
    bosToken: textIn(tokens["bos_token"]),
    decode: (ids, { skipSpecialTokens }) =>
      ids.length === 0
        ? ""
        : tokenizer.decode(Array.from(ids), { skip_special_tokens: skipSpecialTokens }),
    encode: (text, { addSpecialTokens = true } = {}) =>
      tokenizer.encode(text, { add_special_tokens: addSpecialTokens }).ids,
    applyChatTemplate(messages, { addGenerationPrompt = false, values = {} } = {}) {
      const { tools = null, documents = null } = values;
      return templates.forTools(tools !== null).render({
        ...tokens,
        ...values,
        messages: templateMessages(messages),
        tools,
        documents,
        add_generation_prompt: addGenerationPrompt,
      });
    },
  };
}

async function folderOf(named: string): Promise<string> {
  try {
    return await hubFolder(named, (file) => files.test(file));
  } catch (error) {
    if (!(error instanceof HubFileError)) throw error;
    throw new TokenizerFolderError(named, error.reason, { cause: error });
  }
}

/** The files that are read of a model's repository. */
const files =
  /^(?:tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json|chat_template\.jinja|additional_chat_templates\/[^/]+\.jinja)$/;

function textIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

async function jsonOf(folder: string, file: string): Promise<Record<string, unknown>> {
  try {
    return { ...recordIn(JSON.parse(await readFile(join(folder, file), "utf8"))) };
  } catch (error) {
    const isMissing = codeOf(error) === "ENOENT";
    const problem = isMissing ? `no ${file} is there` : `${file}: ${messageOf(error)}`;
    throw new TokenizerFolderError(folder, problem, { cause: error });
  }
}
