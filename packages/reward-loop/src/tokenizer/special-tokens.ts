/**
 * The special tokens that chat templates know by name: of tokenizer_config.json, and of
 * special_tokens_map.json where that one has more.
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fieldOf, messageOf, recordIn } from "@rayling/reward-manager-registry/values";
import { TokenizerFolderError } from "../errors.ts";

const names = ["bos", "eos", "unk", "sep", "pad", "cls", "mask"].map((name) => `${name}_token`);

/**
 * Texts by name, as `bos_token`; those that the model lacks are not there. Rejects with
 * TokenizerFolderError for a file that was cut off.
 */
export async function specialTokensOf(
  path: string,
  config: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const tokens: Record<string, unknown> = {};
  for (const source of [await mapOf(path), config]) {
    for (const name of names) {
      const text = textOf(source[name]);
      if (text !== undefined) tokens[name] = text;
    }
    const { additional_special_tokens: additional, extra_special_tokens: extra } = source;
    if (Array.isArray(additional)) tokens["additional_special_tokens"] = additional.map(textOf);
    if (typeof extra !== "object" || extra === null || Array.isArray(extra)) continue;
    for (const [name, token] of Object.entries(extra)) {
      const text = textOf(token);
      if (text !== undefined) tokens[name] = text;
    }
  }
  return tokens;
}

async function mapOf(path: string): Promise<Readonly<Record<string, unknown>>> {
  const file = "special_tokens_map.json";
  const text = await readFile(join(path, file), "utf8").catch(missing);
  if (text === undefined) return {};
  try {
    return recordIn(JSON.parse(text));
  } catch (error) {
    throw new TokenizerFolderError(path, `${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** Takes the error of a file that need not be there. */
export function missing(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
  throw error;
}

/** A token is a text or { content }. */
function textOf(token: unknown): string | undefined {
  if (typeof token === "string") return token;
  const content = fieldOf(token, "content");
  return typeof content === "string" ? content : undefined;
}
