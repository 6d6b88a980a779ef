/** hf:// names: data files and tokenizers of a Hugging Face Hub, which is a server of the test that speaks its API. */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { HubFileError, hubFile, hubFolder, readRecords } from "@rayling/data-proto";
import { createTokenizer } from "@rayling/reward-loop/tokenizer";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { commit, startHub } from "../../../test/servers/hub.ts";
import type { TestHub } from "../../../test/servers/hub.ts";
import { folder, inProcess, recordsOf, workspace } from "./command.ts";

const rows = [
  { data_source: "sums", response: "42", ground_truth: "42" },
  { data_source: "sums", response: "41", ground_truth: "42" },
];
const jsonl = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const words = {
  model: { type: "WordLevel", vocab: { yes: 0, no: 1, "[UNK]": 2 }, unk_token: "[UNK]" },
};
const repositories = {
  "datasets/acme/sums": { "data/train.jsonl": jsonl },
  "acme/tiny": {
    "tokenizer.json": JSON.stringify({
      version: "1.0",
      added_tokens: [],
      normalizer: null,
      pre_tokenizer: { type: "Whitespace" },
      post_processor: null,
      decoder: null,
      ...words,
    }),
    "tokenizer_config.json": JSON.stringify({
      eos_token: "no",
      chat_template: "{{ messages[0].content }}",
    }),
    "model.safetensors": "weights that nobody needs",
  },
};

let cache = "";
beforeEach(async () => {
  cache = await folder();
  vi.stubEnv("HF_HUB_CACHE", cache);
  vi.stubEnv("HF_TOKEN", undefined);
  vi.stubEnv("HF_ENDPOINT", undefined);
});

async function hub(token?: string): Promise<TestHub> {
  const server = await startHub(repositories, token);
  vi.stubEnv("HF_ENDPOINT", server.url);
  return server;
}

async function failureOf(work: Promise<unknown>): Promise<HubFileError> {
  const error: unknown = await work.catch((reason: unknown) => reason);
  if (error instanceof HubFileError) return error;
  throw new Error("it did not fail as a file of the Hub", { cause: error });
}

test("a file is copied once, into the Hub's own cache, under its commit", async () => {
  await using server = await hub();
  const name = "hf://datasets/acme/sums/data/train.jsonl";
  const path = await hubFile(name);
  expect(path).toBe(join(cache, "datasets--acme--sums/snapshots", commit, "data/train.jsonl"));
  expect(await readFile(path, "utf8")).toBe(jsonl);
  expect(await readdir(join(path, ".."))).toEqual(["train.jsonl"]);
  const values = await Array.fromAsync(readRecords(name), ({ value }) => value);
  expect(values).toEqual(rows);
  const files = server.asked.filter((one) => one.includes("/resolve/"));
  // One request asks what the file is, one brings it.
  expect(files).toHaveLength(2);
  const asked = server.asked.length;
  expect(await hubFile(`hf://datasets/acme/sums@${commit}/data/train.jsonl`)).toBe(path);
  expect(server.asked).toHaveLength(asked);
});

test("only the wanted files of a model are copied", async () => {
  await using _ = await hub();
  const path = await hubFolder("hf://acme/tiny@main", (file) => file.startsWith("tokenizer"));
  expect((await readdir(path)).toSorted()).toEqual(["tokenizer.json", "tokenizer_config.json"]);
});

test("a token is sent where there is one, and never shown", async () => {
  await using _ = await hub("hf_secret");
  const refused = await failureOf(hubFile("hf://datasets/acme/sums/data/train.jsonl"));
  expect(refused.message).toContain("the Hub answered 401: Invalid credentials");
  vi.stubEnv("HF_TOKEN", "hf_secret");
  await hubFile("hf://datasets/acme/sums/data/train.jsonl");
  const none = await failureOf(hubFile("hf://datasets/acme/none/x.jsonl"));
  expect(JSON.stringify(none) + none.message).not.toContain("hf_secret");
});

test.each([
  ["hf://datasets/acme/sums/none.jsonl", "the repository has no such file"],
  ["hf://datasets/acme/none/train.jsonl", "the Hub answered 404: Repository not found"],
  ["hf://datasets/acme/sums", "it names no file"],
  ["hf://datasets/acme", "it must be hf://datasets/OWNER/NAME/FILE"],
  ["hf://datasets/acme/sums/../../train.jsonl", "it leads out of the repository"],
])("%s: %s", async (name, reason) => {
  await using _ = await hub();
  const error = await failureOf(hubFile(name));
  expect(error).toMatchObject({ code: "HUB_FILE", path: name });
  expect(error.message).toContain(reason);
  expect(await readdir(cache)).toEqual([]);
});

describe("rayling score", () => {
  const exact = ["--reward", join(workspace, "examples/rewards/exact-match.ts"), "--workers", "1"];

  test("takes a file of the Hub as its input", async () => {
    await using _ = await hub();
    const out = join(await folder(), "rewards.jsonl");
    const input = "hf://datasets/acme/sums/data/train.jsonl";
    const { code, stderr } = await inProcess("score", input, ...exact, "--out", out);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect((await recordsOf(out)).map(({ score }) => score)).toEqual([1, 0]);
  });

  test("names a file that is not there", async () => {
    await using _ = await hub();
    const { code, stderr } = await inProcess("score", "hf://datasets/acme/sums/no.jsonl", ...exact);
    expect(code).toBe(2);
    expect(stderr).toContain("hf://datasets/acme/sums/no.jsonl: the repository has no such file");
  });
});

test("a tokenizer comes from a model of the Hub", async () => {
  await using _ = await hub();
  const tokenizer = await createTokenizer({ path: "hf://acme/tiny" });
  expect(tokenizer.encode("yes no yes")).toEqual([0, 1, 0]);
  expect(tokenizer.eosToken).toBe("no");
  expect(tokenizer.applyChatTemplate([{ role: "user", content: "hello" }])).toBe("hello");
  await expect(createTokenizer({ path: "hf://acme/none" })).rejects.toThrow("hf://acme/none");
});
