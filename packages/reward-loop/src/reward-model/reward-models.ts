/**
 * The reward models of a loop by their names, each with its own manager, servers and router. They
 * are started and closed together; while they run, one that fails costs only those who ask it.
 */

import { warn } from "@rayling/core/terminal";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { RewardLoopOptionError } from "../errors.ts";
import { defaultName, modelOptionsOf } from "./model-options.ts";
import type { NamedModel, Router } from "./loop-models.ts";
import { RewardModelManager } from "./reward-model-manager.ts";
import type { RewardModelState } from "./reward-model-manager.ts";

/** Lets them sleep again. */
type Release = (hasFailed: boolean) => Promise<void>;

/** The reward models of a loop, by name. */
export class RewardModels implements AsyncDisposable {
  readonly #models: ReadonlyMap<string, RewardModelManager>;
  /** Names of models whose failure to wake up was reported. */
  readonly #failed = new Set<string>();

  private constructor(models: ReadonlyMap<string, RewardModelManager>) {
    this.#models = models;
  }

  /**
   * Starts all at once, except servers that share GPUs with the policy: such a model starts when
   * the one before it sleeps. Rejects as `RewardModelManager.create` if one does not start; the
   * others are closed then.
   */
  static async start(models: readonly NamedModel[]): Promise<RewardModels> {
    let before: Promise<unknown> = Promise.resolve();
    const starting = await Promise.allSettled(
      models.map(async ({ use, ...place }) => {
        const create = (): Promise<RewardModelManager> =>
          RewardModelManager.create(modelOptionsOf(use), place);
        const isShared = use.launch !== undefined && use.sleeps === true;
        const creating = isShared ? before.then(create) : create();
        if (isShared) before = creating;
        return [place.name, await creating] as const;
      }),
    );
    const started = starting.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const running = new RewardModels(new Map(started));
    const failed = starting.find((one) => one.status === "rejected");
    if (failed === undefined) return running;
    await running.close();
    throw failed.reason;
  }

  /** Names in the order of the options. */
  get names(): string[] {
    return [...this.#models.keys()];
  }

  /**
   * The one by the name "default", or the only one; undefined where there are several others, or
   * none.
   */
  get default(): RewardModelManager | undefined {
    const [only] = this.#models.size === 1 ? this.#models.values() : [];
    return this.#models.get(defaultName) ?? only;
  }

  /** Throws RewardLoopOptionError for a name that there is not. */
  of(name: string): RewardModelManager {
    const model = this.#models.get(name);
    if (model !== undefined) return model;
    const wanted = `asked for one of ${this.names.join(", ")}`;
    throw new RewardLoopOptionError("rewardModels", wanted, name);
  }

  /**
   * Wakes all models, or one; each also if another fails. Rejects with EndpointError then, or
   * RewardLoopOptionError for an unknown name.
   */
  async wakeUp(name?: string): Promise<void> {
    await this.#each(name, (model) => model.wakeUp());
  }

  /** Puts all models, or one, to sleep. Rejects as `wakeUp`. */
  async sleep(name?: string): Promise<void> {
    await this.#each(name, (model) => model.sleep());
  }

  /** How each is, by its name. Rejects as `RewardModelManager.state`. */
  async states(): Promise<Readonly<Record<string, RewardModelState>>> {
    const entries = [...this.#models].map(
      async ([name, model]) => [name, await model.state()] as const,
    );
    return Object.fromEntries(await Promise.all(entries));
  }

  /** host:port of each one's router and its token. */
  get routers(): ReadonlyMap<string, Router> {
    const entries = [...this.#models].map(
      ([name, { routerAddress, routerToken }]) =>
        [name, { address: routerAddress, token: routerToken }] as const,
    );
    return new Map(entries);
  }

  /**
   * The result of `work`, which runs while those that sleep are awake. One that does not wake up is
   * reported and left out: its router refuses requests. Rejects as `work`, with EndpointError where
   * none of them wakes up, or where one does not go to sleep again.
   */
  awake<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.canSleep ? this.#whileAwake(work) : work();
  }

  async #whileAwake<Result>(work: () => Promise<Result>): Promise<Result> {
    const release = await this.#wake();
    let hasFailed = true;
    try {
      const result = await work();
      hasFailed = false;
      return result;
    } finally {
      await release(hasFailed);
    }
  }

  /** The values of the stream; they are awake from its first value until it ends or is left. */
  awakeFor<One>(
    stream: AsyncGenerator<One, void, undefined>,
  ): AsyncGenerator<One, void, undefined> {
    return this.canSleep ? this.#awakeFor(stream) : stream;
  }

  async *#awakeFor<One>(
    stream: AsyncGenerator<One, void, undefined>,
  ): AsyncGenerator<One, void, undefined> {
    const release = await this.#wake();
    let hasFailed = false;
    try {
      yield* stream;
    } catch (error) {
      hasFailed = true;
      throw error;
    } finally {
      await release(hasFailed);
    }
  }

  /** Closes all models as `RewardModelManager.close`, each also if another fails. Idempotent. */
  async close(): Promise<void> {
    await this.#each(undefined, (model) => model.close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Whether one of them is put to sleep while nothing is scored. */
  get canSleep(): boolean {
    for (const model of this.#models.values()) if (model.sleeps) return true;
    return false;
  }

  get #sleepers(): [string, RewardModelManager][] {
    return [...this.#models].filter(([, model]) => model.sleeps);
  }

  async #each(
    name: string | undefined,
    act: (model: RewardModelManager) => Promise<void>,
  ): Promise<void> {
    const models = name === undefined ? [...this.#models.values()] : [this.of(name)];
    const acted = await Promise.allSettled(models.map((model) => act(model)));
    const failed = acted.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #wake(): Promise<Release> {
    const over = Promise.withResolvers<void>();
    const holds = this.#sleepers.map(([name, model]) => ({ name, ...hold(model, over.promise) }));
    const awake: Hold[] = [];
    const reasons: unknown[] = [];
    await Promise.all(
      holds.map(async (one) => {
        try {
          await one.isAwake;
          awake.push(one);
          this.#failed.delete(one.name);
        } catch (error) {
          reasons.push(error);
          if (holds.length > 1) this.#report(one.name, error);
        }
      }),
    );
    if (awake.length === 0) throw reasons[0];
    return async (hasFailed) => {
      over.resolve();
      const asleep = await Promise.allSettled(awake.map(({ isOver }) => isOver));
      const failed = asleep.find((one) => one.status === "rejected");
      if (failed !== undefined && !hasFailed) throw failed.reason;
    };
  }

  /** Once, until it is awake again. */
  #report(name: string, error: unknown): void {
    if (this.#failed.has(name)) return;
    this.#failed.add(name);
    warn(`the reward model ${name} did not wake up: ${messageOf(error)}`);
  }
}

interface Hold {
  /** Rejects if it does not wake up. */
  readonly isAwake: Promise<void>;
  /** Resolves when it sleeps again. */
  readonly isOver: Promise<void>;
}

/** Keeps the model awake until `over`. */
function hold(model: RewardModelManager, over: Promise<void>): Hold {
  const { promise: isAwake, resolve, reject } = Promise.withResolvers<void>();
  const isOver = model.awake(() => {
    resolve();
    return over;
  });
  isOver.catch(reject);
  return { isAwake, isOver };
}
