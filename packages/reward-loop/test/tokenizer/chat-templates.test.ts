import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ChatTemplateError, createTokenizer } from "../../src/tokenizer/index.ts";

const tinyModel = fileURLToPath(new URL("../../../../test/fixtures/tiny-model", import.meta.url));
const messages = [{ role: "user", content: "hi" }];
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "chat-templates-"));
  await cp(tinyModel, folder, { recursive: true });
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function configure(changes: Readonly<Record<string, unknown>>): Promise<void> {
  const path = join(folder, "tokenizer_config.json");
  const config = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  await writeFile(path, JSON.stringify({ ...config, ...changes }));
}

test("tools and documents are None where they are not given; all special tokens are there", async () => {
  await configure({
    chat_template:
      "{{ tools is none }} {{ documents }} {{ bos_token }}{{ eos_token }}{{ pad_token }} {{ unk_token is defined }}",
    pad_token: { content: "<pad>" },
  });
  const tokenizer = await createTokenizer({ path: folder });
  expect(tokenizer.applyChatTemplate(messages)).toBe("True None <|bos|><|eos|><pad> False");
});

test("tokens that only special_tokens_map.json has are there; the configuration's own count first", async () => {
  const map = { pad_token: "<map>", eos_token: "<other>", additional_special_tokens: ["<x>"] };
  await writeFile(join(folder, "special_tokens_map.json"), JSON.stringify(map));
  await configure({
    chat_template: "{{ pad_token }}{{ eos_token }}{{ additional_special_tokens }}",
  });
  const tokenizer = await createTokenizer({ path: folder });
  expect(tokenizer.applyChatTemplate(messages)).toBe("<map><|eos|>['<x>']");
  await writeFile(join(folder, "special_tokens_map.json"), JSON.stringify(map).slice(0, 20));
  await expect(createTokenizer({ path: folder })).rejects.toMatchObject({
    code: "TOKENIZER_FOLDER",
    path: folder,
    message: expect.stringContaining("special_tokens_map.json: ") as unknown,
  });
});

test("of several templates the default one is taken, and tool_use with tools", async () => {
  await configure({
    chat_template: [
      { name: "tool_use", template: "tools: {{ tools | tojson }}" },
      { name: "default", template: "plain {{ add_generation_prompt }}" },
    ],
  });
  const tokenizer = await createTokenizer({ path: folder });
  expect(tokenizer.applyChatTemplate(messages)).toBe("plain False");
  const values = { tools: [{ a: 1 }] };
  expect(tokenizer.applyChatTemplate(messages, { values })).toBe('tools: [{"a": 1}]');
});

test("files count before the configuration", async () => {
  await configure({ chat_template: "config" });
  await writeFile(join(folder, "chat_template.jinja"), "file");
  await mkdir(join(folder, "additional_chat_templates"));
  await writeFile(join(folder, "additional_chat_templates/tool_use.jinja"), "with tools");
  const tokenizer = await createTokenizer({ path: folder });
  expect(tokenizer.applyChatTemplate(messages)).toBe("file");
  expect(tokenizer.applyChatTemplate(messages, { values: { tools: [] } })).toBe("with tools");
});

test("without a template, or one called default, it says so when it is asked", async () => {
  await configure({ chat_template: undefined });
  const none = await createTokenizer({ path: folder });
  expect(() => none.applyChatTemplate(messages)).toThrow(ChatTemplateError);
  await configure({ chat_template: [{ name: "rag", template: "x" }] });
  const other = await createTokenizer({ path: folder });
  expect(() => other.applyChatTemplate(messages)).toThrow(/none called default; there are rag/);
});

test("a template that cannot be read takes nothing along but itself", async () => {
  await configure({ chat_template: "{% if %}" });
  const tokenizer = await createTokenizer({ path: folder });
  expect(tokenizer.encode("42")).not.toEqual([]);
  expect(() => tokenizer.applyChatTemplate(messages)).toThrow(/chat template, line 1/);
});
