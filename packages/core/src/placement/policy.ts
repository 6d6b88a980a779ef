/** Where a request goes: a pure function of the request and what the nodes look like now. */
import { covers, type Resources, shortage } from "./resources.ts";

export interface PlacementRequest {
  /** Must be free on the node to start there. */
  readonly place: Resources;
  /** Is taken while it runs. Ray's default actor needs a CPU to be placed and then holds none. */
  readonly hold: Resources;
}

export interface NodeView {
  readonly nodeId: string;
  readonly total: Resources;
  readonly available: Resources;
}

export type Decision =
  | { readonly kind: "place"; readonly nodeId: string }
  /** `feasible` false: no node has as much even when idle; it waits for one that does. */
  | { readonly kind: "wait"; readonly feasible: boolean; readonly reason: string };

export function decide(request: PlacementRequest, nodes: readonly NodeView[]): Decision {
  const free = nodes.find((node) => covers(node.available, request.place));
  if (free !== undefined) return { kind: "place", nodeId: free.nodeId };
  const possible = nodes.filter((node) => covers(node.total, request.place));
  const [closest] = possible.length > 0 ? possible : nodes;
  const against =
    closest === undefined ? {} : possible.length > 0 ? closest.available : closest.total;
  return {
    kind: "wait",
    feasible: possible.length > 0,
    reason: `needs ${shortage(against, request.place)}`,
  };
}
