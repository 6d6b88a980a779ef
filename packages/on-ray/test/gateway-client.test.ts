/** The driver's connection to a gateway, over a real socket, against whatever comes from there. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { RaySystemError } from "@rayling/core";
import { expect, onTestFinished, test } from "vitest";
import { dialGateway, GatewayClient, type GatewayLimits } from "../src/gateway/gateway-client.ts";

/** A client, and the other end of its connection. */
async function connected(
  limits: Partial<GatewayLimits> = {},
): Promise<{ readonly client: GatewayClient; readonly gateway: Socket }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, "connection");
  const announced = { protocol: 1, host: "127.0.0.1", port };
  const client = new GatewayClient(
    "the gateway",
    await dialGateway(announced, { timeoutMs: 30_000 }),
    () => {},
    limits,
  );
  const [gateway]: Socket[] = await accepted;
  gateway!.on("error", () => undefined).resume();
  onTestFinished(() => {
    client.cut();
    gateway!.destroy();
    server.close();
  });
  return { client, gateway: gateway! };
}

test.for([
  ["half a line", '{"id": 1, "ok": {"value": [1,', "the gateway is gone"],
  ["no JSON", "<html>\n", /^the gateway is gone: it sent a line of 6 .* cannot be read: .*</],
  ["no message", "null\n", /^the gateway is gone: it sent a line of 4 .* cannot be read: /],
  ["a long line", "x".repeat(2000), /^the gateway is gone: it sent more than 1000 bytes in one/],
] as const)("%s is the loss of the gateway, and no crash", async ([, sent, message]) => {
  const { client, gateway } = await connected({ maxAnswerBytes: 1000 });
  const asked = client.ask("look");
  gateway.end(sent);
  await expect(asked).rejects.toThrow(RaySystemError);
  await expect(asked).rejects.toThrow(message);
  expect(await client.lost).toMatchObject({ kind: "unreachable" });
});

test("a message that comes in parts, and several in one, are read as they were sent", async () => {
  const { client, gateway } = await connected();
  const asked = ["a", "b", "c"].map((op) => client.ask(op));
  const lines = `{"id": 1, "ok": "ä"}\n{"id": 2, "ok": 2}\n{"id": 3, "ok": 3}\n`;
  const bytes = Buffer.from(lines);
  // It begins in the middle of a letter.
  const at = bytes.indexOf(0xc3) + 1;
  gateway.setNoDelay(true).write(bytes.subarray(0, at), () => gateway.write(bytes.subarray(at)));
  expect(await Promise.all(asked)).toEqual(["ä", 2, 3]);
});

test("a request that is too long fails alone, and says how long it is", async () => {
  const { client, gateway } = await connected({ maxRequestBytes: 1000 });
  createInterface({ input: gateway }).on("line", (line) => {
    const { id, op } = JSON.parse(line);
    gateway.write(`${JSON.stringify({ id, ok: op })}\n`);
  });
  const long = client.ask("python_call", { args: "x".repeat(1000) });
  await expect(long).rejects.toThrow(RaySystemError);
  await expect(long).rejects.toThrow(/request python_call .* has 10\d\d bytes, and may have 1000/);
  expect(await client.ask("look")).toBe("look");
});
