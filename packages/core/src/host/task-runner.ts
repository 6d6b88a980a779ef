/** Runs tasks on a leased worker: finds the function, calls it, answers. The lease keeps it to one task at a time. */
import type { Codec } from "../protocol/codec.ts";
import type { RemoteKey } from "../rpc/directory.ts";
import type { CallMessage, Session } from "../rpc/session.ts";
import type { RemoteSite } from "../shared/errors.ts";
import type { Method } from "../shared/methods.ts";
import { decodeArguments } from "./instance.ts";
import type { Loader } from "./loader.ts";

/** The target of a task's route; its method is the key of the function, as JSON. */
export const taskTarget = "task";

export async function runTask(
  call: CallMessage,
  session: Session,
  loader: Loader,
  codec: Codec,
  hostId: string,
): Promise<void> {
  const key = JSON.parse(call.route.method) as RemoteKey;
  try {
    const task = (await loader.find(key)) as Method;
    const value = await task(...decodeArguments(codec, call));
    session.answer(call.id, codec.encode(value, `result of ${key.name}`));
  } catch (error) {
    const site: RemoteSite = { functionName: key.name, hostId };
    session.answerFailure(call.id, codec.encodeFailure(error, site));
  }
  session.flush();
}
