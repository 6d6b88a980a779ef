/**
 * The chat templates of a model's folder: where they are, and which one is meant. They are parsed
 * when they are first needed.
 */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fieldOf, isList } from "@rayling/reward-manager-registry/values";
import { ChatTemplate } from "../chat-template/chat-template.ts";
import { ChatTemplateError } from "../chat-template/error.ts";
import { missing } from "./special-tokens.ts";

/** A model may have this one besides, for conversations with tools. */
const TOOL_USE = "tool_use";

export interface ChatTemplates {
  /** Throws ChatTemplateError: NO_CHAT_TEMPLATE, and what reading it says. */
  readonly forTools: (hasTools: boolean) => ChatTemplate;
}

export async function chatTemplatesOf(
  path: string,
  config: Readonly<Record<string, unknown>>,
): Promise<ChatTemplates> {
  const texts = new Map([...inConfig(config), ...(await inFiles(path))]);
  const parsed = new Map<string, ChatTemplate>();
  return {
    forTools(hasTools) {
      const name = hasTools && texts.has(TOOL_USE) ? TOOL_USE : "default";
      const text = texts.get(name);
      if (text === undefined) throw noTemplate(path, [...texts.keys()]);
      const template = parsed.get(name) ?? new ChatTemplate(text);
      parsed.set(name, template);
      return template;
    },
  };
}

function noTemplate(path: string, names: readonly string[]): ChatTemplateError {
  const reason =
    names.length === 0
      ? `the model in ${path} has none`
      : `the model in ${path} has none called default; there are ${names.join(", ")}`;
  return new ChatTemplateError("NO_CHAT_TEMPLATE", reason);
}

/** Returns one template, or several by name. */
function inConfig({
  chat_template: own,
}: Readonly<Record<string, unknown>>): (readonly [string, string])[] {
  if (typeof own === "string") return [["default", own]];
  if (!isList(own)) return [];
  return own.flatMap((one) => {
    const [name, template] = [fieldOf(one, "name"), fieldOf(one, "template")];
    return typeof name === "string" && typeof template === "string"
      ? [[name, template] as const]
      : [];
  });
}

/**
 * chat_template.jinja, and additional_chat_templates/NAME.jinja: they count before the
 * configuration.
 */
async function inFiles(path: string): Promise<(readonly [string, string])[]> {
  const folder = join(path, "additional_chat_templates");
  const names = ((await readdir(folder).catch(missing)) ?? []).filter((name) =>
    name.endsWith(".jinja"),
  );
  const files = [
    ["default", join(path, "chat_template.jinja")] as const,
    ...names.map((name) => [name.replace(/\.jinja$/, ""), join(folder, name)] as const),
  ];
  const texts = await Promise.all(
    files.map(async ([name, file]) => [name, await readFile(file, "utf8").catch(missing)] as const),
  );
  return texts.flatMap(([name, text]) => (text === undefined ? [] : [[name, text] as const]));
}
