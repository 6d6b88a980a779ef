/** Reads the arguments of calls, with the values that travelled beside them. */
import type { Codec, Encoded } from "../../protocol/codec.ts";
import type { CallMessage } from "../../protocol/message.ts";
import type { Session } from "../../rpc/session/session.ts";
import { RaySystemError } from "../../shared/errors.ts";
import type { ReceivedSignals } from "./received-signals.ts";

/** @param signals returns the call's AbortSignals, if there are some */
export function decodeArguments(
  codec: Codec,
  call: { readonly arguments: Encoded; readonly dependencies: readonly Encoded[] },
  signals: () => ReceivedSignals,
): unknown[] {
  const { dependencies } = call;
  if (dependencies.length === 0) return listOf(codec.decode(call.arguments));
  let index = 0;
  const slots = dependencies.map((dependency): unknown => {
    if (dependency.isSignal === true) return signals().open(index++, dependency);
    return dependency.isTrace === true ? undefined : codec.decode(dependency);
  });
  return listOf(codec.decode(call.arguments, slots));
}

/** Decodes the arguments of a call that came over that session. */
export function argumentsOf(
  call: CallMessage,
  session: Session,
  codec: Codec,
  signals: () => ReceivedSignals = noSignals,
): unknown[] {
  const args = decodeArguments(codec, call, signals);
  session.calls.wasRead(call.id);
  return args;
}

function noSignals(): never {
  throw new RaySystemError("unexpected signals among the arguments of a call");
}

/** @throws RaySystemError for anything but a list */
function listOf(args: unknown): unknown[] {
  if (!Array.isArray(args)) throw new RaySystemError("malformed arguments from peer: no list");
  return args;
}
