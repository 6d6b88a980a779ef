/** The parts of the Directory in the driver's memory, each from those who know. */
import type { Placement } from "../placement/placement.ts";
import type { ClusterDirectory } from "../rpc/cluster-directory.ts";
import type { ActorDirectory, ActorInfo, WorkerDirectory } from "../rpc/directory.ts";
import type { InsideDirectory } from "../rpc/state.ts";
import { type ActorRegistry, forgotten } from "./actors/actor-registry.ts";
import type { Supervisor } from "./actors/supervisor.ts";
import type { LocalCluster } from "./cluster.ts";
import { statusOf } from "./observe/actor-status.ts";
import type { Workers } from "./workers.ts";

/** @param registered returns the actor of a handle, whose creator may be about to register it */
export function actorAnswers(
  actors: ActorRegistry,
  registered: (info: ActorInfo) => Promise<Supervisor | undefined>,
  driverId: string,
): ActorDirectory {
  return {
    register: (spec) => actors.register(spec, driverId),
    start: (actorId, args) => actors.start(actorId, args),
    abortSignal: (actorId, index, reason) => actors.find(actorId)?.abortSignal(index, reason),
    actorEnded: async (actorId) => actors.find(actorId)?.record.ended(),
    abandon: (actorId, cause) => actors.get(actorId).abandon(cause),
    find: async (name, namespace) => actors.named(name, namespace)?.spec.info,
    list: async (allNamespaces) => actors.names(allNamespaces),
    locate: async (info) =>
      (await registered(info))?.record.located() ?? { state: "dead", cause: forgotten },
    loss: async (actorId, incarnation) =>
      actors.find(actorId)?.record.loss(incarnation) ?? { restarting: false, cause: forgotten },
    outOfScope: (actorId) => actors.outOfScope(actorId),
    async kill(info, noRestart) {
      // When possible, no turn passes in between: a call right after this finds the actor ending.
      const actor = actors.find(info.actorId) ?? (await registered(info));
      await actor?.kill({ kind: "killed", message: "it was killed by ray.kill" }, noRestart);
    },
    async actorStatus(actorId) {
      const actor = actors.find(actorId);
      return actor === undefined ? undefined : await statusOf(actor);
    },
  };
}

export function workerAnswers(
  workers: Workers,
  placement: Placement,
  driverId: string,
): WorkerDirectory {
  return {
    whyWaiting: async (demand) => placement.whyWaiting(demand),
    leaseWorker: (request, ticket) => workers.lease(request, driverId, ticket),
    withdrawWorker: (ticket) => workers.withdraw(driverId, ticket),
    releaseWorker: (hostId) => workers.release(hostId),
    endWorker: (hostId) =>
      workers.end(hostId, { kind: "killed", message: "its task was cancelled with force" }),
    setBlocked: (hostId, blocked) => workers.setBlocked(hostId, blocked),
  };
}

/** @param refresh resolves when the cluster shows this moment */
export function clusterAnswers(
  cluster: LocalCluster,
  refresh: () => Promise<void>,
): ClusterDirectory {
  return {
    async nodes() {
      await refresh();
      return cluster.nodes();
    },
    async resources() {
      await refresh();
      return cluster.resources();
    },
    addNode: async (spec) => cluster.addNode(spec),
    removeNode: (nodeId) => cluster.removeNode(nodeId),
    drainNode: (nodeId, timeoutMs) => cluster.drainNode(nodeId, timeoutMs),
    createGroup: (spec) => cluster.createGroup(spec),
    groupReady: (groupId) => cluster.groupReady(groupId),
    removeGroup: (groupId) => cluster.removeGroup(groupId),
    groups: async () => cluster.groups(),
  };
}

/** @param inside returns the observer of the session */
export function insideAnswers(inside: () => InsideDirectory): InsideDirectory {
  return {
    state: (query) => inside().state(query),
    timeline: () => inside().timeline(),
    metricsText: () => inside().metricsText(),
  };
}
