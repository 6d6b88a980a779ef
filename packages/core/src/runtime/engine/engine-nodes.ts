/**
 * The machines of an engine: each becomes a node of the session when something was reserved on it,
 * and stays one until its agent or the machine is gone.
 */
import type { DeathCause } from "../../shared/errors.ts";
import type { JoinedNode } from "../nodes/joined-node.ts";
import type { NodeSource } from "../nodes/node-source.ts";
import type { OpenEngine } from "./engine.ts";
import { timers } from "../../shared/machine/timers.ts";

/** One time of a machine as a node: from its agent's start to its end. */
export interface NodeLife {
  readonly engineNode: string;
  /** Whether everything that ran there is gone. */
  isOver: boolean;
}

interface Entered {
  readonly life: NodeLife;
  readonly node: JoinedNode;
  /** Ends it for the session. */
  readonly lose: (cause: DeathCause) => void;
}

export class EngineNodes implements NodeSource {
  readonly #open: () => Promise<OpenEngine>;
  readonly #joining: Map<string, Promise<NodeLife>> = new Map();
  readonly #entered: Map<string, Entered> = new Map();
  #onNode: (node: JoinedNode) => void = (node) => void node.close();
  #isClosed = false;

  /** @param open opens the engine, once */
  constructor(open: () => Promise<OpenEngine>) {
    this.#open = open;
  }

  onNode(listener: (node: JoinedNode) => void): void {
    this.#onNode = listener;
  }

  async open(): Promise<void> {
    await this.#open();
  }

  /** The next reservation there starts another agent. */
  lost(): boolean {
    return false;
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Returns the machine as a node, if it is one now. */
  current(engineNode: string): NodeLife | undefined {
    return this.#entered.get(engineNode)?.life;
  }

  /** Makes the machine a node if it is none. Rejects with why it cannot be one. */
  ensure(engineNode: string): Promise<NodeLife> {
    const life = this.current(engineNode);
    if (life !== undefined) return Promise.resolve(life);
    const known = this.#joining.get(engineNode);
    if (known !== undefined) return known;
    const joining = this.#join(engineNode).finally(() => this.#joining.delete(engineNode));
    this.#joining.set(engineNode, joining);
    return joining;
  }

  /** Ends the machine's time as a node, without waiting for its silence. */
  end(engineNode: string, message: string): void {
    const entered = this.#entered.get(engineNode);
    if (entered === undefined) return;
    this.#leave(entered);
    entered.lose({ kind: "node-died", message });
    // By then its hosts have that cause.
    timers.setImmediate(() => void entered.node.close());
  }

  /** Ends all nodes. */
  endAll(message: string): void {
    for (const engineNode of this.#entered.keys()) this.end(engineNode, message);
  }

  async #join(engineNode: string): Promise<NodeLife> {
    const engine = await this.#open();
    const node = await engine.join(engineNode);
    if (this.#isClosed) {
      await node.close();
      throw new Error("the session has ended");
    }
    const { promise: lost, resolve: lose } = Promise.withResolvers<DeathCause>();
    const entered: Entered = { life: { engineNode, isOver: false }, node, lose };
    this.#entered.set(engineNode, entered);
    void node.lost.then((cause) => {
      this.#leave(entered);
      lose(cause);
    });
    this.#onNode({ ...node, lost });
    return entered.life;
  }

  #leave(entered: Entered): void {
    const { life } = entered;
    life.isOver = true;
    if (this.#entered.get(life.engineNode) === entered) this.#entered.delete(life.engineNode);
  }
}
