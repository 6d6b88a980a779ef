/**
 * Who gets which resources of which node: what a session asks of its placement. The `Scheduler`
 * decides it for the nodes of one session.
 */
import type {
  ClusterResources,
  GroupInfo,
  GroupSpec,
  GroupState,
} from "../rpc/cluster-directory.ts";
import type { Amounts, Demand } from "../rpc/resource-demand.ts";
import type { Labels } from "./labels.ts";
import type { PendingLine, PendingRequest } from "./request-queues.ts";
import type { PoolView, RefusalKind } from "./policy.ts";

export interface Placement {
  /** All nodes, including drained ones. */
  readonly nodes: readonly PoolView[];
  /** The resources of all nodes together; the available amount is never negative. */
  readonly resources: ClusterResources;
  addNode(nodeId: string, total: Amounts, labels?: Labels): void;
  /** Its users have lost their place, and groups request the bundles there again. */
  removeNode(nodeId: string): void;
  /**
   * Its users keep their resources until they leave, and the node is shown until it is removed.
   */
  drainNode(nodeId: string): void;
  /** @param label names the requester in the warning about an infeasible request */
  request(demand: Demand, label: string): ResourceRequest;
  /** Creates a group. Returns false when another living group has the name. */
  createGroup(spec: GroupSpec): boolean;
  removeGroup(groupId: string): void;
  /** Resolves when the group is placed, or never will be. */
  groupReady(groupId: string): Promise<GroupState>;
  groups(): readonly GroupInfo[];
  /** Returns all waiting requests, in order of request. */
  pending(): readonly PendingRequest[];
  /** Returns the lines of waiting requests, each with its first request. */
  pendingLines(): readonly PendingLine[];
  /** Returns why requests for that demand wait; undefined when none does. */
  whyWaiting(demand: Demand): string | undefined;
  /** Rejects all current and later requests. */
  close(error: Error): void;
}

export type Outcome =
  | { readonly kind: "placed"; readonly allocation: Allocation }
  | { readonly kind: "refused"; readonly refusal: RefusalKind; readonly reason: string }
  | { readonly kind: "withdrawn" };

export interface ResourceRequest {
  /** Rejects only when the placement closes. */
  readonly outcome: Promise<Outcome>;
  /** Withdraws the request, if it still waits. */
  withdraw(): void;
  /** The reason for the wait; undefined when it is over. */
  readonly reason: string | undefined;
}

/** Held resources. A holder releases them once, and lends their CPUs while it is blocked. */
export interface Allocation {
  readonly nodeId: string;
  /** Whether the node or bundle is gone, so that its users have to end. */
  readonly isLost: boolean;
  /** Variables of a process that uses it, as CUDA_VISIBLE_DEVICES. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Whether the loss comes from a drained node. */
  readonly isDrained: boolean;
  release(): void;
  /**
   * Gives the CPUs back for a while (true) or takes them again (false), beyond the total if
   * necessary. What cannot give back a part gives back all, and asks for it again.
   */
  lend(lent: boolean): void;
}
