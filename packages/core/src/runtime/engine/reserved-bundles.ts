/**
 * The bundles that a session reserves in advance: one placement group of the engine.
 *
 * A request that fits a bundle waits until all of them are reserved, and takes room there. Where
 * bundles have given nothing to requests of its kind for a moment, it asks the engine as well, and
 * the first room counts: no request waits for a bundle that others keep.
 */
import type { PendingLine, PendingRequest } from "../../placement/request-queues.ts";
import type { ResourceRequest } from "../../placement/placement.ts";
import type { GroupInfo, GroupSpec, NodeInfo } from "../../rpc/cluster-directory.ts";
import type { Amounts, Demand } from "../../rpc/resource-demand.ts";
import { clockMs } from "../../shared/clock.ts";
import { present } from "../../shared/errors/internal.ts";
import { newId } from "../../shared/ids.ts";
import { show } from "../../shared/text/show.ts";
import { warn } from "../../shared/text/warning.ts";
import { BundlePools } from "./bundle-pools.ts";
import { FirstOf } from "./first-of.ts";
import { timers } from "../../shared/machine/timers.ts";

/** How long bundles give nothing to a kind of requests until those ask the engine, in ms. */
const noRoomMs = 500;

/** How long requests wait for a bundle whose machine is becoming a node, in ms. */
const startMs = 30_000;

const notReserved = "waits for the bundles of its session, which the cluster has to reserve";

/** The parts of a placement that its bundles need. */
export interface ReservedBundlesParts {
  /** Makes a request whose machine becomes a node before it gets its allocation. */
  readonly onNode: (ask: () => ResourceRequest) => ResourceRequest;
  /** Makes a request to the engine. */
  readonly elsewhere: (demand: Demand, label: string) => ResourceRequest;
  /** Returns the machines as the engine shows them. */
  readonly machines: () => readonly NodeInfo[];
}

interface Waiter {
  readonly demand: Demand;
  readonly label: string;
  readonly sinceMs: number;
  readonly request: FirstOf;
}

export class ReservedBundles {
  readonly spec: GroupSpec;
  readonly #parts: ReservedBundlesParts;
  readonly #pools: BundlePools;
  /** Requests that wait for the bundles and for nothing else. */
  readonly #waiting: Set<Waiter> = new Set();
  /** Kinds of requests that got room since the last look. */
  readonly #served: Set<string> = new Set();
  /** Requests with room whose machine is becoming a node, and since when. */
  readonly #starting: Map<ResourceRequest, number> = new Map();
  #isPlaced = false;
  #timer: NodeJS.Timeout | undefined;
  #closed: Error | undefined;

  constructor(bundles: readonly Amounts[], parts: ReservedBundlesParts) {
    const [groupId, strategy] = [newId("group"), "PACK"] as const;
    const selectors = bundles.map(() => ({}));
    this.spec = { groupId, name: undefined, strategy, bundles, selectors, owner: undefined };
    this.#pools = new BundlePools(bundles, parts.machines);
    this.#parts = parts;
  }

  /** Whether one of them is big enough for the request. */
  isFor(demand: Demand): boolean {
    return this.#pools.isFor(demand);
  }

  request(demand: Demand, label: string): ResourceRequest {
    const request = new FirstOf(notReserved);
    const waiter = { demand, label, sinceMs: clockMs(), request };
    const over = (): void => void this.#waiting.delete(waiter);
    request.outcome.then(over, over);
    if (this.#closed !== undefined) request.fail(this.#closed);
    else if (this.#isPlaced) this.#begin(waiter);
    else this.#waiting.add(waiter);
    return request;
  }

  /** The engine has reserved all bundles, on these machines; after a loss, again. */
  placed(engineNodes: readonly string[]): void {
    this.#pools.placed(engineNodes);
    if (this.#isPlaced) return;
    this.#isPlaced = true;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const waiter of waiting) this.#begin(waiter);
  }

  /** Bundles on that machine are gone until the engine has placed them again. */
  loseNode(engineNode: string): void {
    this.#pools.loseNode(engineNode);
  }

  /** Warns of a bundle that no machine could hold. */
  warnOfLack(): void {
    const { lacking } = this.#pools;
    if (lacking === undefined) return;
    warn(`the bundle ${show(lacking)} of this session waits until a node has as much`);
  }

  info(): GroupInfo {
    const { groupId, strategy, bundles } = this.spec;
    const bundlesToNodeId = this.#pools.places;
    const isWhole = bundlesToNodeId.every((one) => one !== undefined);
    return {
      placementGroupId: groupId,
      name: "",
      strategy,
      state: isWhole ? "CREATED" : this.#isPlaced ? "RESCHEDULING" : "PENDING",
      bundles,
      bundlesToNodeId,
      waitsFor: isWhole ? undefined : "has bundles that the cluster has to reserve",
    };
  }

  pending(): readonly PendingRequest[] {
    return [...this.#waiting].map(({ demand, label, sinceMs, request }) => ({
      label,
      wants: [demand.hold],
      sinceMs,
      feasible: true,
      reason: request.reason ?? "",
    }));
  }

  pendingLines(): readonly PendingLine[] {
    const sizes = new Map<string, number>();
    for (const { demand } of this.#waiting) {
      sizes.set(demand.key, (sizes.get(demand.key) ?? 0) + 1);
    }
    const waiting = [...this.#waiting];
    const rows = this.pending();
    return rows.flatMap((row, index) => {
      const key = present(waiting[index], "request").demand.key;
      const size = sizes.get(key);
      sizes.delete(key);
      return size === undefined ? [] : [{ ...row, size }];
    });
  }

  whyWaiting({ key }: Demand): string | undefined {
    for (const { demand, request } of this.#waiting) {
      if (demand.key === key) return request.reason;
    }
    return undefined;
  }

  close(error: Error): void {
    this.#closed ??= error;
    timers.clearInterval(this.#timer);
    this.#pools.close(error);
    for (const { request } of this.#waiting) request.fail(error);
  }

  #begin(waiter: Waiter): void {
    const { demand, label, request } = waiter;
    const inside = this.#pools.inside(demand);
    if (inside === undefined) return request.ask(() => this.#parts.elsewhere(demand, label));
    request.ask(() => this.#askOnNode(inside, demand, label));
    if (request.reason === undefined) return;
    this.#waiting.add(waiter);
    this.#timer ??= timers.setInterval(() => this.#look(), noRoomMs).unref();
  }

  #askOnNode(inside: Demand, { key }: Demand, label: string): ResourceRequest {
    const onNode: ResourceRequest = this.#parts.onNode(() =>
      this.#pools.request(inside, label, () => {
        this.#served.add(key);
        this.#starting.set(onNode, clockMs());
      }),
    );
    const isNode = (): void => void this.#starting.delete(onNode);
    onNode.outcome.then(isNode, isNode);
    return onNode;
  }

  /** Lets those ask the engine for whose kind no bundle had room since the last look. */
  #look(): void {
    if (this.#waiting.size === 0) {
      timers.clearInterval(this.#timer);
      this.#timer = undefined;
    }
    if (this.#isStarting()) return;
    for (const waiter of this.#waiting) {
      const { demand, label, request } = waiter;
      if (this.#served.has(demand.key) || request.reason === undefined) continue;
      this.#waiting.delete(waiter);
      request.ask(() => this.#parts.elsewhere(demand, label));
    }
    this.#served.clear();
  }

  /** Whether the work in a bundle has not begun yet, because its machine is becoming a node. */
  #isStarting(): boolean {
    const since = clockMs() - startMs;
    return [...this.#starting.values()].some((sinceMs) => sinceMs > since);
  }
}
