/** Images in messages: what a score function asks a model is sent as it is. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { chatComplete } from "@rayling/reward-loop/client";
import type { ContentPart } from "@rayling/reward-loop/client";

/** Answers each request with "yes". @returns its address, and what it was asked */
async function startModel(): Promise<{ address: string; asked: unknown[] }> {
  const asked: unknown[] = [];
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      asked.push(body);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ choices: [{ message: { content: "yes" } }] }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { address: `127.0.0.1:${port}`, asked };
}

test("parts of a message are sent as they are, with all that is in them", async () => {
  const { address, asked } = await startModel();
  const content: readonly ContentPart[] = [
    { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } },
    { type: "text", text: "Is this right? é" },
    { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
  ];
  const messages = [
    { role: "system", content: "Judge." },
    { role: "user", content },
  ] as const;
  const { text } = await chatComplete({ baseUrl: address, model: "m", messages });
  expect(text).toBe("yes");
  expect(asked).toEqual([{ model: "m", messages }]);
});
