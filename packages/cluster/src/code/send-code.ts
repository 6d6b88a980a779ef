/**
 * Sends code to one agent: each package once, for all hosts that need it, and no more packages at a
 * time than an agent accepts.
 */
import type { Remote } from "comlink";
import pLimit from "p-limit";
import { RaySystemError, type DeathCause } from "@rayling/core/cluster";
import { type CodeControl, maxCodeOnTheWay, type ShippedCode } from "../contract.ts";
import type { CodePackage } from "./code-package.ts";

/** The most unacknowledged portions. */
const maxOnTheWay = 4;

interface Transfer {
  readonly done: Promise<void>;
  isOver: boolean;
}

export class CodeSender {
  readonly #agent: Promise<Remote<CodeControl>>;
  readonly #lost: Promise<DeathCause>;
  /** Transfers by package id. */
  readonly #brought: Map<string, Transfer> = new Map();
  readonly #limit = pLimit(maxCodeOnTheWay);

  constructor(agent: Promise<Remote<CodeControl>>, lost: Promise<DeathCause>) {
    this.#agent = agent;
    this.#lost = lost;
  }

  /**
   * Resolves when the package is there. Rejects with the reason of a failure; the next call tries
   * again.
   */
  async bring(given: CodePackage): Promise<ShippedCode> {
    const code = await given.code();
    let brought = this.#brought.get(code.id);
    if (brought === undefined) {
      const transfer: Transfer = { done: this.#bring(given, code), isOver: false };
      this.#brought.set(code.id, transfer);
      transfer.done.then(
        () => (transfer.isOver = true),
        () => this.#brought.delete(code.id),
      );
      brought = transfer;
    }
    await brought.done;
    return code;
  }

  /**
   * Handles the agent's answer that a package which was brought is gone: the next call asks again.
   * One that is on its way stays: it may be brought again already, for another host.
   */
  missing({ id }: ShippedCode): void {
    if (this.#brought.get(id)?.isOver === true) this.#brought.delete(id);
  }

  async #bring(given: CodePackage, { id }: ShippedCode): Promise<void> {
    const agent = await this.#agent;
    if (await agent.hasCode(id)) return;
    await this.#limit(() => this.#send(agent, given, id));
  }

  async #send(agent: Remote<CodeControl>, given: CodePackage, id: string): Promise<void> {
    const portions = await given.portions();
    // Queries of a lost agent are never answered.
    void this.#lost.then(({ message }) => portions.destroy(new RaySystemError(message)));
    const onTheWay: Promise<void>[] = [];
    try {
      await agent.openCode(id);
      for await (const portion of portions) {
        const written = agent.writeCode(id, portion as Uint8Array);
        // The wait for the earlier portion reports the error first.
        written.catch(() => undefined);
        onTheWay.push(written);
        if (onTheWay.length >= maxOnTheWay) await onTheWay.shift();
      }
      await Promise.all(onTheWay);
      await agent.closeCode(id);
    } catch (error) {
      portions.destroy();
      void agent.dropCode(id).catch(() => undefined);
      throw error;
    }
  }
}
