/**
 * A judge behind HTTP that answers each chat completion alike, after 20 ms. Prints its port, and
 * ends with its standard input.
 */
import { createServer } from "node:http";
import { portOf } from "../measure/port.ts";

const answer = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  choices: [
    { index: 0, finish_reason: "stop", message: { role: "assistant", content: "Score: 7" } },
  ],
  usage: { prompt_tokens: 200, completion_tokens: 3, total_tokens: 203 },
});
const head = {
  "content-type": "application/json",
  "content-length": answer.length,
  "x-ratelimit-remaining-requests": "100000",
  "x-ratelimit-reset-requests": "1s",
};

const server = createServer((request, response) => {
  request.resume().on("end", () => {
    setTimeout(() => response.writeHead(200, head).end(answer), 20);
  });
});
server.listen(0, "127.0.0.1", () => console.log(portOf(server)));
process.stdin.resume().on("end", () => process.exit());
