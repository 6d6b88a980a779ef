/**
 * The servers of a reward model (verl RewardModelManager): started here or already running, behind
 * one router, put to sleep and woken together.
 *
 * While a reward model sleeps its memory is free for the policy: `awake` wakes it for a piece of
 * work and puts it to sleep again, however the work ends.
 */

import * as ray from "@rayling/core";
import type { ActorHandle } from "@rayling/core";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { originOf } from "../client/address.ts";
import { postText } from "../client/post-json.ts";
import { RewardLoopClosedError, RewardModelStartError } from "../errors.ts";
import { engines } from "./engines.ts";
import { checkModelOptions, defaultName, onlyModel, secretsOf } from "./model-options.ts";
import type { ModelPlace } from "./model-options.ts";
import type { RewardModelOptions } from "../options/defaults/reward-model.ts";
import { RewardModelRouterActor } from "./router-actor.ts";
import type { RewardModelRouterHost } from "./router-actor.ts";
import { ServerProcess } from "./server-process.ts";
import type { LaunchOptions } from "../options/defaults/reward-model.ts";
import type { UpstreamState } from "./upstreams.ts";

/** How a reward model is. */
export interface RewardModelState {
  /** The engine of its servers, as `vllm` or `sglang`. */
  readonly engine: string;
  /** "failed": it did not wake up when it was last needed. */
  readonly state: "awake" | "asleep" | "failed";
  /** host:port */
  readonly routerAddress: string;
  /** The state of each of its servers. */
  readonly servers: readonly UpstreamState[];
}

/** A router that listens, and the servers behind it. */
interface Running {
  readonly processes: readonly ServerProcess[];
  readonly servers: readonly string[];
  readonly router: ActorHandle<RewardModelRouterHost>;
  /** host:port of the router. */
  readonly address: string;
  readonly token: string;
  readonly apiKey: string | undefined;
}

/** verl's `RewardModelManager`: the servers of one reward model with their router. */
export class RewardModelManager implements AsyncDisposable {
  readonly #options: RewardModelOptions;
  readonly #processes: readonly ServerProcess[];
  readonly #servers: readonly string[];
  readonly #router: ActorHandle<RewardModelRouterHost>;
  /** host:port: what score functions are given as `rewardRouterAddress`. */
  readonly routerAddress: string;
  readonly #routerToken: string;
  readonly #apiKey: string | undefined;
  /** A model that failed to wake up is asked for nothing until it is awake. */
  #state: RewardModelState["state"] = "awake";
  /** Pieces of work that need it awake. */
  #works = 0;
  /** The last transition; the model wakes up or goes to sleep one after the other. */
  #turning: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  private constructor(
    options: RewardModelOptions,
    { processes, servers, router, address, token, apiKey }: Running,
  ) {
    this.#options = options;
    this.#apiKey = apiKey;
    this.#processes = processes;
    this.#servers = servers;
    this.#router = router;
    this.routerAddress = address;
    this.#routerToken = token;
  }

  /**
   * Resolves when all servers are healthy and the router listens. Rejects with
   * RewardLoopOptionError, RewardModelStartError, or the error of a server that cannot be put to
   * sleep; everything that it started is ended then.
   *
   * @param place its name, with which its variables of the environment end, and the option that
   * errors name
   */
  static async create(
    options: RewardModelOptions,
    place: ModelPlace = onlyModel,
  ): Promise<RewardModelManager> {
    checkModelOptions(place.option, options);
    const { servers = [], launch, router: routerOptions = {}, sleeps = false } = options;
    const { token, apiKey } = secretsOf(options, place);
    const { healthPath, keyVariable } = engines[options.engine];
    const isGiven = launch !== undefined && apiKey !== undefined && keyVariable !== undefined;
    const key = isGiven ? { [keyVariable]: apiKey } : {};
    const processes = await startAll(
      launch === undefined ? undefined : { ...launch, env: { ...key, ...launch.env } },
      healthPath,
      place,
    );
    const router = RewardModelRouterActor.remote();
    try {
      const all = [...servers, ...processes.map(({ address }) => address)];
      const asked = { healthPath, ...(apiKey === undefined ? {} : { apiKey }), ...routerOptions };
      const address = await ray.get(router.start.remote(all, { ...asked, token }));
      const running = { processes, servers: all, router, address, token, apiKey };
      const manager = new RewardModelManager(options, running);
      if (sleeps) await manager.sleep();
      return manager;
    } catch (error) {
      await ray.kill(router);
      await Promise.all(processes.map((one) => one.stop()));
      throw error;
    }
  }

  /**
   * The token that requests must have as `Authorization: Bearer <token>`. Score functions get it as
   * `rewardRouterToken`. It is no field, so that it is not printed by chance.
   */
  get routerToken(): string {
    return this.#routerToken;
  }

  /** Whether it sleeps while it is not needed. */
  get sleeps(): boolean {
    return this.#options.sleeps === true;
  }

  /**
   * Wakes all servers at once. Rejects with EndpointError if one fails; its router then refuses
   * requests (503, `model_not_awake`) until it is awake.
   */
  async wakeUp(): Promise<void> {
    try {
      await this.#tellAll("wakeUp");
    } catch (error) {
      this.#state = "failed";
      const reason = `the reward model did not wake up: ${messageOf(error)}`;
      await ray.get(this.#router.refuse.remote(reason));
      throw error;
    }
    if (this.#state === "failed") await ray.get(this.#router.refuse.remote(undefined));
    this.#state = "awake";
  }

  /**
   * Puts all servers to sleep at once, each of them also if another fails. Rejects with
   * EndpointError then.
   */
  async sleep(): Promise<void> {
    await this.#tellAll("sleep");
    if (this.#state === "awake") this.#state = "asleep";
  }

  /**
   * Runs `work` with the model awake; when no such work is left the model sleeps again, also if the
   * work or the waking has failed. Without `sleeps` it is always awake.
   */
  async awake<Result>(work: () => Promise<Result>): Promise<Result> {
    if (!this.sleeps) return work();
    let hasFailed = false;
    try {
      await this.#begin();
      return await work();
    } catch (error) {
      hasFailed = true;
      throw error;
    } finally {
      await this.#end(hasFailed);
    }
  }

  /**
   * Yields the stream's values with the model awake, from the first value until the stream ends or
   * is left.
   */
  async *awakeFor<One>(
    stream: AsyncGenerator<One, void, undefined>,
  ): AsyncGenerator<One, void, undefined> {
    if (!this.sleeps) {
      yield* stream;
      return;
    }
    let hasFailed = false;
    try {
      await this.#begin();
      yield* stream;
    } catch (error) {
      hasFailed = true;
      throw error;
    } finally {
      await this.#end(hasFailed);
    }
  }

  /** Rejects with ActorDiedError where its router is gone. */
  async state(): Promise<RewardModelState> {
    const { engine } = this.#options;
    const servers = await this.servers();
    return { engine, state: this.#state, routerAddress: this.routerAddress, servers };
  }

  /** The router's state of the servers. */
  async servers(): Promise<readonly UpstreamState[]> {
    return ray.get(this.#router.servers.remote());
  }

  /**
   * The router finishes pending requests; servers that were started here are ended, the others
   * sleep, even while they are needed. Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      if (this.#works > 0 && this.#options.servers !== undefined) this.#turn(() => this.sleep());
      await this.#turning.catch(() => undefined);
      if (ray.isInitialized()) {
        await ray.get(this.#router.close.remote()).catch(() => undefined);
        await ray.kill(this.#router);
      }
      await Promise.all(this.#processes.map((one) => one.stop()));
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Work that begins while the model wakes up waits for that, too. */
  #begin(): Promise<void> {
    this.#works += 1;
    if (this.#closing !== undefined) return Promise.reject(new RewardLoopClosedError());
    if (this.#works === 1) this.#turn(() => this.wakeUp());
    return this.#turning;
  }

  /** @param hasFailed whether there is an earlier failure, which takes precedence */
  async #end(hasFailed: boolean): Promise<void> {
    this.#works -= 1;
    if (this.#works > 0 || this.#closing !== undefined) return;
    this.#turn(() => this.sleep());
    await this.#turning.catch((error: unknown) => {
      if (!hasFailed) throw error;
    });
  }

  #turn(into: () => Promise<void>): void {
    // The callers that waited for the turn before have its failure.
    this.#turning = this.#turning.catch(() => undefined).then(into);
  }

  async #tellAll(what: "wakeUp" | "sleep"): Promise<void> {
    const { path, body } = engines[this.#options.engine][what];
    const { sleepTimeoutMs: timeoutMs = 300_000 } = this.#options;
    const key = this.#apiKey;
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const results = await Promise.allSettled(
      this.#servers.map((server) =>
        postText(`${originOf(server)}${path}`, body, { timeoutMs, headers }),
      ),
    );
    const failed = results.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}

/** Starts all processes, or none. */
async function startAll(
  launch: LaunchOptions | undefined,
  healthPath: string,
  place: ModelPlace,
): Promise<ServerProcess[]> {
  if (launch === undefined) return [];
  const starting = Array.from({ length: launch.replicas ?? 1 }, (_, index) =>
    ServerProcess.start(launch, index, healthPath),
  );
  const started = await Promise.allSettled(starting);
  const processes = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = started.find((one) => one.status === "rejected");
  if (failed === undefined) return processes;
  await Promise.all(processes.map((one) => one.stop()));
  throw withName(failed.reason, place);
}

function withName(error: unknown, { name }: ModelPlace): unknown {
  if (!(error instanceof RewardModelStartError) || name === defaultName) return error;
  return new RewardModelStartError(error.address, error.reason, error.stderr, name);
}
