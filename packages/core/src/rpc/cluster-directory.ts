/** Questions about nodes and placement groups: part of the Directory, plain data like all of it. */
import type { Amounts, LabelConditions } from "./resource-demand.ts";

/** A node as `nodes()` shows it; names are Ray's in camelCase. */
export interface NodeInfo {
  /** The node's id, as strategies take it. */
  readonly nodeId: string;
  /** False when it was removed or lost. */
  readonly alive: boolean;
  /** It is being emptied: nothing new is placed there. */
  readonly draining: boolean;
  /** The name that it was given; its id without one. */
  readonly nodeName: string;
  /** The machine's own name for itself. */
  readonly nodeManagerHostname: string;
  /**
   * The address by which this session's driver reaches the machine. For the driver's own machine:
   * the first address that other machines may reach.
   */
  readonly nodeManagerAddress: string;
  /** Everything the node has; nothing when it is dead. */
  readonly resources: Amounts;
  /** The part of it that is free now. */
  readonly availableResources: Amounts;
  /** Labels that label selectors look at. */
  readonly labels: Readonly<Record<string, string>>;
  /** Why it is dead. */
  readonly deathReason: string | undefined;
}

/** The machine that a node is on. */
export interface NodeMachine {
  readonly hostname: string;
  readonly address: string;
}

/** How a node is to be made. */
export interface NodeSpec {
  /** An engine's own id. Default: a new one. */
  readonly nodeId?: string;
  /** None: the driver's own. */
  readonly machine?: NodeMachine;
  readonly nodeName: string | undefined;
  readonly resources: Amounts;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * How bundles are spread: PACK on few nodes and SPREAD over many, if that can be; STRICT_PACK on
 * one node, STRICT_SPREAD each on its own, or not at all.
 */
export type GroupStrategy = "PACK" | "SPREAD" | "STRICT_PACK" | "STRICT_SPREAD";

export interface GroupSpec {
  readonly groupId: string;
  readonly name: string | undefined;
  readonly strategy: GroupStrategy;
  readonly bundles: readonly Amounts[];
  /** Conditions on the node of each bundle; as long as `bundles`. */
  readonly selectors: readonly LabelConditions[];
  /** The actor that made it, with which it ends; none: the driver, a task, or it is detached. */
  readonly owner: string | undefined;
}

/**
 * PENDING: bundles wait for room. CREATED: all are reserved. RESCHEDULING: a node was lost, and its
 * bundles wait. REMOVED: it is no more.
 */
export type GroupState = "PENDING" | "CREATED" | "RESCHEDULING" | "REMOVED";

/** A placement group as `placementGroupTable()` shows it. */
export interface GroupInfo {
  /** The group's id. */
  readonly placementGroupId: string;
  /** The name that it was given; empty without one. */
  readonly name: string;
  /** How its bundles are spread over nodes. */
  readonly strategy: GroupStrategy;
  /** Whether its bundles are reserved. */
  readonly state: GroupState;
  /** Amounts of each bundle, by resource. */
  readonly bundles: readonly Amounts[];
  /** The node of each bundle; undefined while it has none. */
  readonly bundlesToNodeId: readonly (string | undefined)[];
  /** Why it waits, if it does. */
  readonly waitsFor: string | undefined;
}

/** `created` false: the name is taken. */
export interface GroupRegistration {
  readonly created: boolean;
}

/** Sums over all living nodes. */
export interface ClusterResources {
  readonly total: Amounts;
  readonly available: Amounts;
}

export interface ClusterDirectory {
  nodes(): Promise<readonly NodeInfo[]>;
  resources(): Promise<ClusterResources>;
  addNode(spec: NodeSpec): Promise<NodeInfo>;
  /**
   * Resolves when the node's hosts are gone; false when there is no such living node, or when it is
   * the driver's own.
   */
  removeNode(nodeId: string): Promise<boolean>;
  /**
   * Empties a node and removes it, after `timeoutMs` at the latest. Resolves with whether nothing
   * was left there by then; undefined when it is no living node, or the driver's own.
   */
  drainNode(nodeId: string, timeoutMs: number): Promise<boolean | undefined>;
  createGroup(spec: GroupSpec): GroupRegistration | Promise<GroupRegistration>;
  /** Resolves with CREATED when all bundles are reserved, with REMOVED when they will never be. */
  groupReady(groupId: string): Promise<GroupState>;
  /** Resolves when its actors and tasks are gone. */
  removeGroup(groupId: string): Promise<void>;
  groups(): Promise<readonly GroupInfo[]>;
}
