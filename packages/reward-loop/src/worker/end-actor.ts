/** Ends an actor that may have ended already. */

import * as ray from "@rayling/core";
import type { ActorHandle } from "@rayling/core";

/** Resolves also where the actor, or its session, has ended before. */
export async function endActor(actor: ActorHandle<object>): Promise<void> {
  try {
    await ray.kill(actor);
  } catch {
    // Nothing is left to end.
  }
}
