/** Brings code to one agent: each package once, all who need it wait for the same, and no more packages at the same time than an agent takes. */
import type { Remote } from "comlink";
import pLimit from "p-limit";
import { RaySystemError, type DeathCause } from "@rayling/core/cluster";
import { type CodeControl, maxCodeOnTheWay, type ShippedCode } from "../contract.ts";
import type { CodePackage } from "./code-package.ts";

/** Portions that are on their way at the same time. */
const maxOnTheWay = 4;

export class CodeSender {
  readonly #agent: Promise<Remote<CodeControl>>;
  readonly #lost: Promise<DeathCause>;
  /** By the ids of packages. */
  readonly #brought: Map<string, Promise<void>> = new Map();
  readonly #limit = pLimit(maxCodeOnTheWay);

  constructor(agent: Promise<Remote<CodeControl>>, lost: Promise<DeathCause>) {
    this.#agent = agent;
    this.#lost = lost;
  }

  /** Resolves when it is there. Rejects with why it cannot be; the next who needs it tries again. */
  async bring(given: CodePackage): Promise<ShippedCode> {
    const code = await given.code();
    let brought = this.#brought.get(code.id);
    if (brought === undefined) {
      brought = this.#bring(given, code);
      this.#brought.set(code.id, brought);
      brought.catch(() => this.#brought.delete(code.id));
    }
    await brought;
    return code;
  }

  async #bring(given: CodePackage, { id }: ShippedCode): Promise<void> {
    const agent = await this.#agent;
    if (await agent.hasCode(id)) return;
    await this.#limit(() => this.#send(agent, given, id));
  }

  async #send(agent: Remote<CodeControl>, given: CodePackage, id: string): Promise<void> {
    const portions = await given.portions();
    // What was asked of an agent that is gone is never answered.
    void this.#lost.then(({ message }) => portions.destroy(new RaySystemError(message)));
    const onTheWay: Promise<void>[] = [];
    try {
      await agent.openCode(id);
      for await (const portion of portions) {
        const written = agent.writeCode(id, portion as Uint8Array);
        // Whoever waits for the one before it hears first.
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
