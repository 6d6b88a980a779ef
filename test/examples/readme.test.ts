/** The first two programs of README.md run as they stand there, with the commands beside them. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { root } from "../workspace/source.ts";

const run = promisify(execFile);
const page = readFileSync(join(root, "README.md"), "utf8");
const [judge = "", actor = ""] = [...page.matchAll(/^```ts\n(.*?)^```/gms)].map(
  (match) => match[1] ?? "",
);

/** Beside the examples, whose packages a reader has. */
async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(root, "examples", "readme-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

test("the actor counts, in at most 20 lines", async () => {
  expect(actor.split("\n").length).toBeLessThanOrEqual(20);
  const folder = await newFolder();
  await writeFile(join(folder, "counter.ts"), actor);
  const { stdout, stderr } = await run(process.execPath, ["counter.ts"], { cwd: folder });
  expect(stdout).toBe("[ 1, 3, 6 ]\n");
  expect(stderr).toBe("");
});

test("the judge scores the solution, by an OpenAI-compatible server", async () => {
  const folder = await newFolder();
  const asked: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += String(chunk);
    asked.push(body);
    const content = JSON.stringify({ reason: "2 + 2 is 4.", choice: "right" });
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ choices: [{ message: { content }, finish_reason: "stop" }] }));
  });
  onTestFinished(() => void server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  const [, line = "", input = ""] = /echo '(.*)' > (\S+)$/m.exec(page) ?? [];
  const [, command = ""] = /npx rayling (score --solutions .*)$/m.exec(page) ?? [];
  await writeFile(join(folder, "judge.ts"), judge);
  await writeFile(join(folder, input), `${line}\n`);
  const main = join(root, "packages/rayling/dist/cli/main.js");
  await run(process.execPath, [main, ...command.split(" ")], {
    cwd: folder,
    env: {
      ...process.env,
      JUDGE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    },
  });
  const [record = ""] = (await readFile(join(folder, "rewards.jsonl"), "utf8")).split("\n");
  expect(JSON.parse(record)).toMatchObject({ valid: true, score: 1 });
  expect(asked).toHaveLength(1);
  expect(asked[0]).toContain("It is 4.");
});
