import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { createTokenizer } from "../../src/tokenizer/index.ts";
import type { ChatMessage, ChatTokenizer } from "../../src/tokenizer/index.ts";

type Name = "whole" | "asked";
type Outcome = { readonly text: string } | { readonly error: string };
type Case = { readonly messages: readonly ChatMessage[] } & Readonly<Record<Name, Outcome>>;

/** Made by make.py beside it. */
const golden = JSON.parse(readFileSync(new URL("messages.json", import.meta.url), "utf8")) as {
  readonly templates: Readonly<Record<Name, string>>;
  readonly cases: readonly Case[];
};

const tinyModel = fileURLToPath(new URL("../../../../test/fixtures/tiny-model", import.meta.url));

async function tokenizerWith(template: string): Promise<ChatTokenizer> {
  const folder = await mkdtemp(join(tmpdir(), "template-messages-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await cp(tinyModel, folder, { recursive: true });
  const path = join(folder, "tokenizer_config.json");
  const config = JSON.parse(await readFile(path, "utf8")) as object;
  await writeFile(path, JSON.stringify({ ...config, chat_template: template }));
  return await createTokenizer({ path: folder });
}

test("there are cases that render and cases that fail", () => {
  expect(golden.cases.length).toBeGreaterThan(20);
  expect(golden.cases.some(({ whole }) => "error" in whole)).toBe(true);
});

test.each(["whole", "asked"] as const)(
  "messages reach the template %s as in transformers",
  async (name) => {
    const tokenizer = await tokenizerWith(golden.templates[name]);
    for (const { messages, [name]: outcome } of golden.cases) {
      const render = (): string => tokenizer.applyChatTemplate(messages);
      if ("text" in outcome) expect(render()).toBe(outcome.text);
      else expect(render).toThrow(expect.objectContaining({ code: "CHAT_TEMPLATE_FAILED" }));
    }
  },
);

test("messages of the caller stay as they are, and a key that is undefined is not there", async () => {
  const tokenizer = await tokenizerWith(golden.templates.whole);
  const message = { role: "user", content: null, name: undefined, reasoning: "r" };
  expect(tokenizer.applyChatTemplate([message])).toBe(
    "[{'thinking': 'r', 'role': 'user', 'reasoning': 'r', 'reasoning_content': 'r'}]",
  );
  expect(message).toEqual({ role: "user", content: null, name: undefined, reasoning: "r" });
});
