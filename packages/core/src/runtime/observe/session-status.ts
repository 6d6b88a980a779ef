/**
 * The session at one moment, read in one turn: nodes with their used resources, actors by state,
 * and waiting requests with their reasons. It queries no host.
 */
import type { ActorStateName } from "../../rpc/state.ts";
import type { DriverAbout, NodeStatus, ResourceUse, SessionStatus } from "../../rpc/commands.ts";
import type { NodeInfo } from "../../rpc/cluster-directory.ts";
import { clockMs } from "../../shared/clock.ts";
import type { LocalDirectory } from "../directory.ts";
import { stateNames } from "./actor-status.ts";

/** The most lines of waiting requests in the status. */
const maxLines = 1000;

export function sessionStatus(
  driver: DriverAbout,
  directory: LocalDirectory,
  headId: string,
): SessionStatus {
  const actors: Record<ActorStateName, number> = {
    DEPENDENCIES_UNREADY: 0,
    PENDING_CREATION: 0,
    ALIVE: 0,
    RESTARTING: 0,
    DEAD: 0,
  };
  for (const { record } of directory.actors()) actors[stateNames[record.state]] += 1;
  const placementGroups: Record<string, number> = {};
  for (const { state } of directory.cluster.groups()) {
    placementGroups[state] = (placementGroups[state] ?? 0) + 1;
  }
  const lines = directory.waitingLines();
  const now = clockMs();
  return {
    driver,
    timeMs: Date.now(),
    nodes: directory.cluster.nodes().map((node) => nodeStatus(node, headId)),
    actors,
    placementGroups,
    pending: lines.slice(0, maxLines).map(({ label, size, wants, feasible, reason, sinceMs }) => ({
      first: label,
      count: size,
      wants,
      feasible,
      reason,
      waitingMs: Math.max(0, Math.round(now - sinceMs)),
    })),
    pendingLines: lines.length,
  };
}

function nodeStatus(node: NodeInfo, headId: string): NodeStatus {
  const { nodeId, nodeName, nodeManagerHostname: hostname } = node;
  const { alive, draining, resources, availableResources, deathReason } = node;
  const uses = Object.entries(resources).map(([name, total]): [string, ResourceUse] => [
    name,
    { used: rounded(total - (availableResources[name] ?? 0)), total },
  ]);
  return {
    nodeId,
    nodeName,
    hostname,
    state: alive ? "ALIVE" : "DEAD",
    isHeadNode: nodeId === headId,
    resources: Object.fromEntries(uses),
    stateMessage: draining ? "it is being drained" : deathReason,
  };
}

/** Amounts are counted in ten-thousandths. */
function rounded(amount: number): number {
  return Math.round(amount * 10_000) / 10_000;
}
