/**
 * One session on an engine: opens it at the first need, and ends everything when it is lost.
 */
import type { Placement } from "../../placement/placement.ts";
import type { Amounts } from "../../rpc/resource-demand.ts";
import type { ForeignAnswer, ForeignRequest } from "../../rpc/engine-actors.ts";
import { type DeathCause, RaySystemError, SessionEndedError } from "../../shared/errors.ts";
import { asError } from "../../shared/errors/thrown.ts";
import { warn } from "../../shared/text/warning.ts";
import type { NodeSource } from "../nodes/node-source.ts";
import {
  engineFor,
  type EngineEvents,
  type EngineRequest,
  type EngineView,
  type OpenEngine,
} from "./engine.ts";
import { EngineNodes } from "./engine-nodes.ts";
import { EnginePlacement } from "./engine-placement.ts";

export class EngineSession {
  readonly #request: EngineRequest;
  readonly #nodes: EngineNodes;
  readonly #placement: EnginePlacement;
  #opening: Promise<OpenEngine> | undefined;
  #engine: OpenEngine | undefined;
  readonly #ended: AbortController = new AbortController();
  #isClosed = false;

  /** @param bundles that it reserves in advance */
  constructor(request: EngineRequest, bundles: readonly Amounts[]) {
    this.#request = request;
    const open = (): Promise<OpenEngine> => this.open();
    this.#nodes = new EngineNodes(open);
    this.#placement = new EnginePlacement({
      bundles,
      open,
      engine: () => this.#engine,
      nodes: this.#nodes,
    });
  }

  get placement(): Placement {
    return this.#placement;
  }

  get nodes(): NodeSource {
    return this.#nodes;
  }

  /** The last known state of the cluster. */
  get view(): EngineView | undefined {
    return this.#engine?.view;
  }

  /** Resolves when `view` is of this moment. Rejects when the engine cannot be used. */
  async refresh(): Promise<void> {
    const engine = await this.open();
    await engine.refresh();
  }

  /** Opens the engine, once. Rejects with why that fails. */
  open(): Promise<OpenEngine> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** Rejects when the engine cannot be used. */
  async foreign(request: ForeignRequest): Promise<ForeignAnswer> {
    const engine = await this.open();
    return engine.foreign?.(request) ?? {};
  }

  /** Gives everything back. Resolves when nothing of the session is left there. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#engine === undefined) {
      this.#ended.abort(new SessionEndedError("the session has ended"));
    }
    const engine = await this.#opening?.catch(() => undefined);
    await engine?.close();
  }

  async #open(): Promise<OpenEngine> {
    let engine: OpenEngine | undefined;
    try {
      const opener = await engineFor(this.#request.address)();
      const events: EngineEvents = {
        nodeGone: (engineNode, reason) => {
          this.#placement.loseNode(engineNode);
          this.#nodes.end(engineNode, reason);
        },
        groupPlaced: (groupId, engineNodes) => this.#placement.groupPlaced(groupId, engineNodes),
        agentGone: (engineNode, reason) => this.#nodes.end(engineNode, `its agent ${reason}`),
      };
      engine = await opener(this.#request, events, this.#ended.signal);
      this.#engine = engine;
      void engine.lost.then((cause) => this.#lost(cause));
      if (this.#isClosed) throw new SessionEndedError("the session has ended");
      await this.#placement.reserveBundles(engine);
      return engine;
    } catch (error) {
      this.#placement.close(asError(error));
      await engine?.close();
      throw error;
    }
  }

  /** Nothing more can be placed, and what runs ends with the engine's agents. */
  #lost({ message }: DeathCause): void {
    if (this.#isClosed) return;
    warn(message);
    this.#placement.close(new RaySystemError(message));
    this.#nodes.endAll(message);
  }
}
