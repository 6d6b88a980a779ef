/**
 * The nodes of a session and their resources; and further nodes in this process, for tests with
 * several nodes.
 */
import type { NodeInfo } from "../rpc/cluster-directory.ts";
import type { Amounts } from "../rpc/resource-demand.ts";
import { nodeAmounts } from "../runtime/init-options.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { checkOptions, count, text, isRecord } from "../shared/options.ts";
import { show } from "../shared/text/show.ts";
import { amount, bytes, gpus, resources } from "./scheduling/amounts.ts";
import { labels } from "./scheduling/labels.ts";
import { asked, letGo } from "./session.ts";

/** Returns all nodes, including dead ones, with Ray's fields in camelCase. */
export async function nodes(): Promise<readonly NodeInfo[]> {
  return asked((directory) => directory.nodes());
}

/**
 * Returns the total resources of the living nodes: `{ CPU: 8, memory: …, "node:…": 1 }`, memory in
 * bytes. Bundles of placement groups count for their nodes.
 */
export async function clusterResources(): Promise<Amounts> {
  return (await asked((directory) => directory.resources())).total;
}

/** Returns the free resources of the living nodes, memory in bytes. */
export async function availableResources(): Promise<Amounts> {
  return (await asked((directory) => directory.resources())).available;
}

/** Options of `drainNode`. */
export interface DrainOptions {
  /** The time to leave the node, in ms; the rest ends with the node. Default 600,000. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Drains a node and removes it from the session. Nothing more is placed there. Actors that may be
 * restarted move as soon as there is room elsewhere: running calls end first, queued calls wait for
 * the next incarnation, and the move counts as no restart. Tasks end where they are, results that
 * others hold are handed over, and placement groups look for new bundles. Actors that may not be
 * restarted stay until they end by themselves, or the time is over.
 *
 * Resolves with whether the node was empty. Rejects with InvalidOptionError for a node that is not
 * alive, or the driver's own.
 */
export async function drainNode(
  node: Pick<NodeInfo, "nodeId">,
  options: DrainOptions = {},
): Promise<boolean> {
  checkOptions("drainNode", options, { timeoutMs: count(0, "fraction") });
  const nodeId: unknown = isRecord(node) ? node["nodeId"] : undefined;
  const { timeoutMs = 600_000 } = options;
  const isEmpty =
    typeof nodeId === "string"
      ? await asked((directory) => directory.drainNode(nodeId, timeoutMs))
      : undefined;
  if (isEmpty !== undefined) return isEmpty;
  throw new InvalidOptionError(
    "node",
    `drainNode takes a living node other than the driver's own, not ${show(nodeId ?? node)}`,
  );
}

/** Options of `Cluster.addNode`. */
export interface NodeOptions {
  /** CPUs of the node. Default 1. */
  readonly numCpus?: number | undefined;
  /** GPUs of the node, which the scheduler only counts. Default: none. */
  readonly numGpus?: number | undefined;
  /** Bytes of memory. Default: that of `init`. */
  readonly memory?: number | undefined;
  /** Amounts of custom resources: `{ license: 2 }`. Default: none. */
  readonly resources?: Readonly<Record<string, number>> | undefined;
  /** Labels of the node: `{ zone: "a" }`. Default: none. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** A name for people. Default: the node's id. */
  readonly nodeName?: string | undefined;
}

/**
 * Adds nodes in this process, as Ray's `cluster_utils.Cluster` does for tests: each is a set of
 * resources and the hosts that are started for it. `init` makes the first one, which cannot be
 * removed.
 */
export class Cluster {
  readonly #added: Set<string> = new Set();

  /**
   * Adds a node; waiting actors and tasks that fit start there. Rejects with InvalidOptionError.
   */
  async addNode(options: NodeOptions = {}): Promise<NodeInfo> {
    checkOptions("addNode", options, {
      numCpus: amount,
      numGpus: gpus,
      memory: bytes,
      resources,
      labels,
      nodeName: text,
    });
    const { nodeName } = options;
    const spec = { nodeName, resources: nodeAmounts(options), labels: options.labels ?? {} };
    const node = await asked((directory) => directory.addNode(spec));
    this.#added.add(node.nodeId);
    return node;
  }

  /**
   * Ends a node with everything on it, as if the machine were gone: actors restart elsewhere if
   * they may, tasks are retried, placement groups look for a new place. Resolves when its hosts are
   * gone. Rejects with InvalidOptionError for a node that is not alive, or the driver's own.
   */
  async removeNode(node: Pick<NodeInfo, "nodeId">): Promise<void> {
    const nodeId: unknown = isRecord(node) ? node["nodeId"] : undefined;
    const removed =
      typeof nodeId === "string" && (await asked((directory) => directory.removeNode(nodeId)));
    if (!removed) {
      throw new InvalidOptionError(
        "node",
        `removeNode takes a living node that addNode gave, not ${show(nodeId ?? node)}`,
      );
    }
    this.#added.delete(nodeId);
  }

  /** Removes the added nodes, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await letGo(async () => {
      for (const nodeId of this.#added) await asked((directory) => directory.removeNode(nodeId));
    });
    this.#added.clear();
  }
}
