/** The nodes and what they have; and more nodes in this process, for tests of what happens on several. */
import type { NodeInfo } from "../rpc/cluster.ts";
import type { Amounts } from "../rpc/demand.ts";
import { nodeAmounts } from "../runtime/driver.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { checkOptions, text } from "../shared/options.ts";
import { show } from "../shared/show.ts";
import { amount, bytes, gpus, resources } from "./amounts.ts";
import { labels } from "./labels.ts";
import { isDriverCode, never, useCaller } from "./session.ts";

/** All nodes, the dead ones too: Ray's fields in camelCase. */
export async function nodes(): Promise<readonly NodeInfo[]> {
  if (isDriverCode()) return never();
  return useCaller().directory.nodes();
}

/** What the living nodes have in all: `{ CPU: 8, memory: …, "node:…": 1 }`. Bundles of placement groups count for their nodes. */
export async function clusterResources(): Promise<Amounts> {
  if (isDriverCode()) return never();
  return (await useCaller().directory.resources()).total;
}

/** What of it is free now. */
export async function availableResources(): Promise<Amounts> {
  if (isDriverCode()) return never();
  return (await useCaller().directory.resources()).available;
}

export interface NodeOptions {
  /** Default 1. */
  readonly numCpus?: number;
  readonly numGpus?: number;
  /** Bytes. Default: as `init`. */
  readonly memory?: number;
  readonly resources?: Readonly<Record<string, number>>;
  readonly labels?: Readonly<Record<string, string>>;
  /** A name for people. Default: its id. */
  readonly nodeName?: string;
}

/**
 * More nodes in this process, as Ray's `cluster_utils.Cluster` has them for tests: each is a set of resources and the hosts that are
 * started for it. `init` makes the first one, which cannot be removed.
 */
export class Cluster {
  /** What waited for such a node starts there. Rejects with InvalidOptionError. */
  async addNode(options: NodeOptions = {}): Promise<NodeInfo> {
    if (isDriverCode()) return never();
    checkOptions("addNode", options, {
      numCpus: amount,
      numGpus: gpus,
      memory: bytes,
      resources,
      labels,
      nodeName: text,
    });
    const { nodeName } = options;
    return useCaller().directory.addNode({
      nodeName,
      resources: nodeAmounts(options),
      labels: options.labels ?? {},
    });
  }

  /**
   * Ends a node with everything on it, as if the machine were gone: actors restart elsewhere if they may, tasks are tried again, placement
   * groups look for a new place. Resolves when its hosts are gone. Rejects with InvalidOptionError for a node that is not alive, or the driver's own.
   */
  async removeNode(node: Pick<NodeInfo, "nodeId">): Promise<void> {
    if (isDriverCode()) return never();
    const nodeId: unknown = (node as { nodeId?: unknown } | null)?.nodeId;
    const removed = typeof nodeId === "string" && (await useCaller().directory.removeNode(nodeId));
    if (!removed) {
      throw new InvalidOptionError(
        "node",
        `removeNode takes a living node that addNode gave, not ${show(nodeId ?? node)}`,
      );
    }
  }
}
