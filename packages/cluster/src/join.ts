/**
 * Joins machines with an agent as nodes of this driver: each is one more launcher.
 */
import type { JoinedNode, JoinRequest, NodeConnector } from "@rayling/core/cluster";
import { NodeAddressError } from "./address.ts";
import { CodePackages } from "./code/code-package.ts";
import type { NodeOffer } from "./contract.ts";
import { RemoteNode } from "./remote-node.ts";

/** Returns the connector for the nodes of one session, which share the session's code. */
export function nodeJoiner(): NodeConnector {
  const packages = new CodePackages();
  const joined = new Map<string, string>();
  return (address, request) => joinNode(address, request, packages, joined);
}

/**
 * Joins a machine. Rejects with NodeAddressError when no agent answers there, or the agent is
 * already a node.
 *
 * @param joined addresses of joined machines, by their agents
 */
export async function joinNode(
  address: string,
  request: JoinRequest,
  packages?: CodePackages,
  joined: Map<string, string> = new Map(),
): Promise<JoinedNode> {
  const node = new RemoteNode(address, request, packages);
  const { name } = node;
  let offer: NodeOffer;
  try {
    offer = await node.offer;
    const known = joined.get(offer.agentId);
    if (known !== undefined) {
      throw new NodeAddressError(name, `is the agent at ${known}, which is already a node`);
    }
  } catch (error) {
    await node.close();
    throw error;
  }
  const { agentId, hostname, ...offered } = offer;
  joined.set(agentId, name);
  node.takeOver();
  void node.lost.then(() => joined.delete(agentId));
  return {
    ...offered,
    machine: { hostname, address: node.host },
    lost: node.lost,
    launch: (wish, options) => node.launch(wish, options),
    outOfReach: () => node.outOfReach(),
    close: () => node.close(),
  };
}
