/**
 * The contract of engines: an existing cluster manager that decides which machine an actor or a
 * task runs on, and keeps its resources for it.
 *
 * Core knows no engine by name: `provideEngine` injects one, which is loaded when `init` gets an
 * address of its scheme.
 */
import type { ClusterResources, GroupSpec, NodeInfo } from "../../rpc/cluster-directory.ts";
import type { Demand } from "../../rpc/resource-demand.ts";
import type { ForeignAnswer, ForeignRequest } from "../../rpc/engine-actors.ts";
import { type DeathCause, InvalidOptionError } from "../../shared/errors.ts";
import { show } from "../../shared/text/show.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import type { JoinedNode, JoinRequest } from "../nodes/joined-node.ts";

/** The session that opens an engine. */
export interface EngineRequest extends JoinRequest {
  /** As `init` got it. */
  readonly address: string;
  readonly jobId: string;
  readonly namespace: string;
}

/** Reports of an engine while it is open. */
export interface EngineEvents {
  /** The machine is gone, with its reservations. */
  readonly nodeGone: (engineNode: string, reason: string) => void;
  /** The agent on that machine has ended; reservations there stay. */
  readonly agentGone: (engineNode: string, reason: string) => void;
  /** All bundles of a group are reserved, on these machines; called again after a loss. */
  readonly groupPlaced: (groupId: string, engineNodes: readonly string[]) => void;
}

/** The engine's answer to a demand. */
export type Reserved =
  | {
      readonly kind: "reserved";
      readonly engineNode: string;
      /** Variables of a process that uses it. */
      readonly env?: Readonly<Record<string, string>> | undefined;
    }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "withdrawn" };

/** The cluster as the engine shows it, everybody's use included. */
export interface EngineView {
  readonly nodes: readonly NodeInfo[];
  readonly resources: ClusterResources;
}

export interface OpenEngine {
  /** The last known state of the cluster. */
  readonly view: EngineView;
  /** Resolves when `view` is of this moment. */
  refresh(): Promise<void>;
  /**
   * Reserves what the demand holds. Resolves when the engine has named a machine, which may take
   * for ever. Rejects when the engine is lost.
   */
  reserve(reservationId: string, demand: Demand): Promise<Reserved>;
  /** Reserves a placement group; `groupPlaced` follows. Rejects with why it can never be. */
  reserveGroup(spec: GroupSpec): Promise<void>;
  /** Gives a reservation or a group back, or withdraws it while it waits. */
  release(reservationId: string): void;
  /** Starts an agent on that machine, and joins it. Rejects with why that fails. */
  join(engineNode: string): Promise<JoinedNode>;
  /** Actors of the cluster in another language, if it has such. Rejects when the engine is lost. */
  foreign?(request: ForeignRequest): Promise<ForeignAnswer>;
  /** Resolves when the engine can do nothing more for this session. */
  readonly lost: Promise<DeathCause>;
  /** Gives everything back. Resolves when nothing of this session is left there. */
  close(): Promise<void>;
}

/**
 * Rejects with why the engine cannot be used, or with the reason of `signal`, which a session
 * aborts that ends before its engine is open.
 */
export type EngineOpener = (
  request: EngineRequest,
  events: EngineEvents,
  signal: AbortSignal,
) => Promise<OpenEngine>;

type Load = () => Promise<EngineOpener>;

const slot: Map<string, Load> = threadSlot("engines", () => new Map());

/**
 * Injects an engine, which loads when `init` gets such an address. The first one of a scheme
 * counts.
 *
 * @param scheme of the addresses, as `ray+http` of `ray+http://head:8265`; a word without `://` is
 *   the whole address
 */
export function provideEngine(load: Load, scheme: string): void {
  if (!slot.has(scheme)) slot.set(scheme, load);
}

/** @throws InvalidOptionError when no engine was injected for the address */
export function engineFor(address: string): Load {
  const load = slot.get(/^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase() ?? address);
  if (load !== undefined) return load;
  const known = [...slot.keys()].map((scheme) => (/\W/.test(scheme) ? `${scheme}://…` : scheme));
  throw new InvalidOptionError(
    "address",
    known.length === 0
      ? "option address needs an engine: import init from rayling, or call enableOnRay of @rayling/on-ray"
      : `option address must be one of ${known.join(", ")}, not ${show(address)}`,
  );
}
