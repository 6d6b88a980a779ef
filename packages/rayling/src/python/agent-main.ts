/**
 * An agent for a Python process that started this one (`python/src/rayling/on_ray/agents.py`): the
 * socket that is file descriptor 3 brings its options in one line of JSON, takes its address in
 * another, and ends it.
 */
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import { type AgentOptions, type MachineKey, makeMachineKey, startAgent } from "@rayling/cluster";

const socket = new Socket({ fd: 3, readable: true, writable: true });
// The end of the socket ends the agent, for whatever reason.
const lines = createInterface({ input: socket }).on("error", () => undefined);

function say(message: object): void {
  socket.write(`${JSON.stringify(message)}\n`);
}

/** The key of this machine stays here: its public half leaves, and its certificate comes. */
let key: MachineKey | undefined;

interface Order extends AgentOptions {
  /** The certificate of this machine, and that of the session's authority. */
  readonly certified?: { readonly ca: string; readonly cert: string };
}

lines.on("line", (line) => {
  const order: Order | "key" = JSON.parse(line);
  if (order !== "key") return start(order);
  key = makeMachineKey();
  say({ publicKey: key.publicKey });
});

function start({ certified, ...options }: Order): void {
  const credentials =
    certified === undefined || key === undefined
      ? {}
      : { credentials: { ...certified, key: key.privateKey } };
  startAgent({ ...options, ...credentials }).then(
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
}
