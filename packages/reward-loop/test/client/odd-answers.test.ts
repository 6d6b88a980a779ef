/** What the client makes of answers that are no answers. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { chatComplete } from "@rayling/reward-loop/client";
import { expect, onTestFinished, test } from "vitest";

/** @returns what asking this server comes to */
async function asking(status: number, body: Buffer, headers = {}): Promise<unknown> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, headers);
    response.end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const asked = chatComplete({ baseUrl: `127.0.0.1:${port}`, model: "judge", messages: [] });
  return asked.catch((error: unknown) => error);
}

const packed = gzipSync(Buffer.alloc(80 * 2 ** 20, " "));

test.each([
  [200, "MALFORMED_ANSWER"],
  [503, "HTTP_STATUS"],
])("a small answer of status %s that unpacks to too much is given up", async (status, code) => {
  expect(await asking(status, packed, { "content-encoding": "gzip" })).toMatchObject({
    code,
    status,
    message: expect.stringContaining(`answered ${status} with more than 64 MiB`) as string,
  });
});

test("what a stream says that nobody asked for is no answer, and what it used is known", async () => {
  const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
  const events = [{ usage: null, choices: [] }, { usage }, "[DONE]"];
  const text = events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join("");
  expect(await asking(200, Buffer.from(text))).toMatchObject({ code: "MALFORMED_ANSWER", usage });
});

test("a byte order mark before an answer is nothing of it", async () => {
  const text = `\ufeff${JSON.stringify({ choices: [{ message: { content: "yes" } }] })}`;
  expect(await asking(200, Buffer.from(text))).toMatchObject({ text: "yes" });
});
