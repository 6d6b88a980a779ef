/** What an actor is doing, for people: from its supervisor, and from its host if that answers in time. */
import type { HostStats } from "../../host/control.ts";
import type { ActorStatus } from "../../rpc/directory.ts";
import type { ActorStateName } from "../../rpc/state.ts";
import type { Host } from "../launch/host.ts";
import type { ActorState, Supervisor } from "../supervisor.ts";

/** A host that does not answer for so long is held by the code that it runs. */
const silentMs = 1000;

/** Ray's names. */
export const stateNames: Readonly<Record<ActorState, ActorStateName>> = {
  registered: "DEPENDENCIES_UNREADY",
  pending: "PENDING_CREATION",
  alive: "ALIVE",
  restarting: "RESTARTING",
  dead: "DEAD",
};

export async function statusOf(actor: Supervisor): Promise<ActorStatus> {
  const { info } = actor.spec;
  const { host, state, cause, waitsFor } = actor;
  const stats =
    state === "alive" && host !== undefined
      ? await answerOf(host, (control) => control.stats(), silentMs)
      : undefined;
  const load = stats?.actors.find(({ actorId }) => actorId === info.actorId);
  return {
    actorId: info.actorId,
    className: info.className,
    state: stateNames[state],
    reason: state === "dead" ? cause?.message : waitsFor,
    hostId: host?.id,
    load: load === undefined ? undefined : { running: load.running, queued: load.queued },
  };
}

/** What a host answers; undefined when it is gone, or does not answer in time. */
export async function answerOf<T = HostStats>(
  host: Host,
  ask: Parameters<typeof host.control<T>>[0],
  limitMs: number,
): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), limitMs);
  // Who asks only for a warning keeps no process alive.
  timer.unref();
  try {
    return await Promise.race([host.control<T>(ask), promise]);
  } catch {
    // It is gone, and has nothing to say.
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
