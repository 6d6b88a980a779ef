/**
 * Looks into threads of this process that do not answer, because code holds them: an inspector
 * interrupts that code for a moment, in loops, regular expressions and `Atomics.wait` alike.
 *
 * It asks by one expression, and sets no breakpoint: the code goes on by itself, also when this
 * thread ends meanwhile. Code that is not JavaScript (a child process that is waited for, a read of
 * a pipe) cannot be interrupted; the thread stays silent then, and hears of it too late.
 */
import type { Session } from "node:inspector";
import { lookSlot } from "../../host/calls/host-stack.ts";
import type { RuntimeLook } from "../../rpc/stacks.ts";

export interface ThreadLooks {
  /** Resolves with what a host does; undefined: it did not answer before `close`. */
  of(hostId: string): Promise<RuntimeLook | undefined>;
  close(): void;
}

interface Inspected {
  readonly promise: Promise<RuntimeLook | undefined>;
  readonly resolve: (look: RuntimeLook | undefined) => void;
}

const slots = `globalThis[Symbol.for("rayling.thread.v1")]`;
const expression = `${slots}?.get(${JSON.stringify(lookSlot)})?.look()`;

/** Returns undefined where programs have or allow no inspector. */
export function openThreadLooks(hostIds: readonly string[]): ThreadLooks | undefined {
  const inspector = process.getBuiltinModule("node:inspector") as
    | { readonly Session: new () => Session }
    | undefined;
  if (inspector === undefined) return undefined;
  const session = new inspector.Session();
  const wanted = new Map(
    hostIds.map((id) => [id, Promise.withResolvers<RuntimeLook | undefined>()]),
  );
  const asked = new Map<string, Inspected>();
  session.on("NodeWorker.attachedToWorker", ({ params: { sessionId, workerInfo } }) => {
    const hostId = [...wanted.keys()].find((id) => workerInfo.title.endsWith(id));
    const one = hostId === undefined ? undefined : wanted.get(hostId);
    if (one === undefined) return;
    asked.set(sessionId, one);
    const params = { expression, returnByValue: true };
    const message = JSON.stringify({ id: 1, method: "Runtime.evaluate", params });
    session.post("NodeWorker.sendMessageToWorker", { sessionId, message }, (error) => {
      if (error !== null) one.resolve(undefined);
    });
  });
  session.on("NodeWorker.receivedMessageFromWorker", ({ params: { sessionId, message } }) => {
    asked.get(sessionId)?.resolve(lookIn(message));
  });
  try {
    session.connect();
    session.post("NodeWorker.enable", { waitForDebuggerOnStart: false });
  } catch {
    return undefined;
  }
  return {
    of: (hostId) => wanted.get(hostId)?.promise ?? Promise.resolve(undefined),
    close: () => {
      for (const { resolve } of wanted.values()) resolve(undefined);
      session.disconnect();
    },
  };
}

/** The answer of `Runtime.evaluate` has the text of the host's own `look`. */
function lookIn(message: string): RuntimeLook | undefined {
  const { result } = JSON.parse(message) as {
    readonly result?: { readonly result?: { readonly value?: unknown } };
  };
  const text = result?.result?.value;
  return typeof text === "string" && text !== "" ? (JSON.parse(text) as RuntimeLook) : undefined;
}
