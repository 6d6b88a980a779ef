/**
 * The activity of an actor, for people: from its supervisor, and from its host if that answers in
 * time.
 */
import type { HostStats } from "../../host/host-control.ts";
import type { ActorStatus } from "../../rpc/directory.ts";
import type { ActorStateName } from "../../rpc/state.ts";
import type { Host } from "../launch/host.ts";
import type { ActorState } from "../actors/actor-record.ts";
import type { Supervisor } from "../actors/supervisor.ts";
import { timers } from "../../shared/machine/timers.ts";

/** A host that is silent for this long, in ms, is said not to answer. */
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
  const { state, cause, life } = actor.record;
  const { host } = life;
  const asked = state === "alive" ? host : undefined;
  const stats =
    asked === undefined ? undefined : await answerOf(asked, (control) => control.stats(), silentMs);
  const load = stats?.actors.find(({ actorId }) => actorId === info.actorId);
  return {
    actorId: info.actorId,
    className: info.className,
    state: stateNames[state],
    reason: state === "dead" ? cause?.message : actor.waitsFor,
    hostId: host?.id,
    load: load === undefined ? undefined : { running: load.running, queued: load.queued },
    silence: asked === undefined || stats !== undefined ? undefined : silenceOf(asked),
  };
}

/** Returns why a host does not answer, in words: all that may be the reason, where several may. */
export function silenceOf({ channel, isolation, isRemote }: Host): string {
  if (!channel.isOpen) return "it has ended";
  if (isRemote === true) {
    return "code holds the thread of its process, the process or its machine stands still, or the network to that machine is down";
  }
  return isolation === "thread"
    ? "code that runs there holds its thread"
    : "code holds the thread of its process, or the process is stopped";
}

/** Returns the answer of a host; undefined when it is gone, or does not answer in time. */
export async function answerOf<T = HostStats>(
  host: Host,
  ask: Parameters<typeof host.control<T>>[0],
  limitMs: number,
): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = timers.setTimeout(() => resolve(undefined), limitMs);
  // A query for a warning must not keep the process alive.
  timer.unref();
  try {
    return await Promise.race([host.control<T>(ask), promise]);
  } catch {
    // The host is gone, so there is no answer.
    return undefined;
  } finally {
    timers.clearTimeout(timer);
  }
}
