/**
 * An agent for a Python process that started this one (`python/src/rayling/on_ray/agents.py`): the
 * socket that is file descriptor 3 brings its options in one line of JSON, takes its address in
 * another, and ends it.
 */
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import { type AgentOptions, startAgent } from "@rayling/cluster";

const socket = new Socket({ fd: 3, readable: true, writable: true });
// The end of the socket ends the agent, for whatever reason.
const lines = createInterface({ input: socket }).on("error", () => undefined);

function say(message: object): void {
  socket.write(`${JSON.stringify(message)}\n`);
}

lines.once("line", (line) => {
  const options: AgentOptions = JSON.parse(line);
  startAgent(options).then(
    (agent) => {
      say({ address: agent.address, pid: process.pid });
      const end = (): void => void agent.close();
      socket.on("close", end).on("error", end);
      void agent.closed.then(() => process.exit(0));
    },
    (error: unknown) => {
      say({ error: error instanceof Error ? error.message : String(error) });
      socket.end(() => process.exit(1));
    },
  );
});
