/**
 * Provides hosts: it starts them by their isolation, keeps the living ones, and ends them all.
 *
 * A few threads start ahead of need, because a thread needs tens of milliseconds to be ready.
 * Others take their places when actors are made one after another, and not when a program makes
 * some at its beginning and no more. Processes start when they are needed.
 */
import { type DeathCause, SessionEndedError } from "../../shared/errors.ts";
import type { Credentials } from "../../transport/tls/credentials.ts";
import { Guard } from "./driver-watchdog.ts";
import {
  changesProcess,
  type Host,
  HostLostError,
  type HostRequest,
  type LauncherOptions,
  withEnv,
} from "./host.ts";
import { asForThread, mergedEnv, ownEnv } from "./inherited-env.ts";
import type { NodeLauncher } from "../nodes/joined-node.ts";
import { launchProcess } from "./launch-process.ts";
import { launchThread } from "./launch-thread.ts";
import { startsAtOnce, StartTurns } from "./start-turns.ts";

export class Launcher {
  readonly #options: LauncherOptions;
  readonly #hosts: Set<Host> = new Set();
  readonly #warm: Host[] = [];
  #hasActors = false;
  /** Threads that were asked for alone, when there were actors and no thread stood ready. */
  #missed = 0;
  /** The turns of each machine. */
  readonly #turns: Map<string, StartTurns> = new Map();
  /** Launchers of other machines, by the id of their node. */
  readonly #nodes: Map<string, NodeLauncher> = new Map();
  #guard: Guard | undefined;
  #open = true;

  constructor(options: LauncherOptions) {
    this.#options = options;
    this.#warmUp();
  }

  /** Registers a node whose hosts start on another machine. */
  addNode(nodeId: string, node: NodeLauncher): void {
    this.#nodes.set(nodeId, node);
    void node.lost.then(() => {
      this.#nodes.delete(nodeId);
      this.#turns.get(nodeId)?.close();
      this.#turns.delete(nodeId);
    });
  }

  /**
   * Returns a host for one actor or for tasks, when it is its turn: a ready one, unless the request
   * has settings of its own.
   *
   * @param isWanted called again at its turn; if it returns false, the result is undefined
   */
  async take(request: HostRequest, isWanted: () => boolean): Promise<Host | undefined> {
    const ready = this.#takeWarm(request);
    if (ready !== undefined) return this.#taken(ready, request);
    const turns = this.#turnsOn(request.nodeId);
    await turns.next();
    try {
      this.#checkOpen();
      if (isWanted()) return this.#taken(this.#launch(request), request);
    } catch (error) {
      turns.end();
      throw error;
    }
    turns.end();
    return undefined;
  }

  /** Returns a host without waiting for a turn. */
  takeNow(request: HostRequest): Host {
    return this.#taken(this.#takeWarm(request) ?? this.#startNow(request), request);
  }

  /** Says what the children of its code inherit, before any of its code runs. */
  #taken(host: Host, { inherited, runtimeEnv }: HostRequest): Host {
    const handedDown = mergedEnv(inherited, ownEnv(runtimeEnv));
    if (handedDown !== undefined) this.#options.onTaken(host, handedDown);
    return host;
  }

  #startNow(request: HostRequest): Host {
    const turns = this.#turnsOn(request.nodeId);
    turns.take();
    try {
      return this.#launch(request);
    } catch (error) {
      turns.end();
      throw error;
    }
  }

  #takeWarm({ nodeId, isolation, ...wish }: HostRequest): Host | undefined {
    this.#checkOpen();
    if (isolation !== "thread" || nodeId !== this.#options.nodeId) return undefined;
    const { variables, runtimeEnv, inherited } = wish;
    if (variables !== undefined || changesProcess(runtimeEnv) || changesProcess(inherited)) {
      return undefined;
    }
    const ready = this.#warm.shift();
    if (ready === undefined && this.#hasActors && this.#turnsOn(nodeId).isIdle) this.#missed += 1;
    return ready;
  }

  #turnsOn(nodeId: string): StartTurns {
    // A node without a machine of its own starts its hosts here.
    const node = this.#nodes.get(nodeId);
    const machine = node === undefined ? this.#options.nodeId : nodeId;
    let turns = this.#turns.get(machine);
    if (turns === undefined) {
      turns = new StartTurns(startsAtOnce(node?.parallelism));
      this.#turns.set(machine, turns);
    }
    return turns;
  }

  #checkOpen(): void {
    if (!this.#open) throw new SessionEndedError("no host is started: the session has ended");
  }

  /** Replaces threads that were taken, if more are to be expected. */
  actorStarted(): void {
    const { prewarm, keepsPrewarm } = this.#options;
    this.#hasActors = true;
    if (keepsPrewarm || this.#missed >= prewarm) this.#warmUp();
  }

  /** Other starts have precedence: two threads that start side by side slow each other down. */
  #warmUp(): void {
    const { nodeId, prewarm } = this.#options;
    const turns = this.#turnsOn(nodeId);
    while (this.#open && this.#warm.length < prewarm && !turns.isFull) {
      let host: Host;
      try {
        host = this.#startNow({ nodeId, isolation: "thread", runtimeEnv: undefined });
      } catch (error) {
        // No thread can have the settings of the session: a request for one gets the error.
        if (error instanceof HostLostError) return;
        throw error;
      }
      this.#warm.push(host);
      void host.exited.then(() => {
        const index = this.#warm.indexOf(host);
        if (index >= 0) this.#warm.splice(index, 1);
      });
    }
  }

  /** Renews the credentials of hosts on this machine; other hosts show those of their machine. */
  renew(credentials: Credentials): void {
    for (const host of this.#hosts) {
      if (host.isRemote === true) continue;
      void host
        .control((control) => control.renew(credentials))
        .catch(() => {
          // The host has ended, and needs none.
        });
    }
  }

  /** Ends the hosts of one node, and the connection to its machine. */
  async endNode(nodeId: string, cause: DeathCause): Promise<void> {
    const node = this.#nodes.get(nodeId);
    const hosts = [...this.#hosts].filter((host) => host.nodeId === nodeId);
    const ended = Promise.all(hosts.map((host) => host.terminate(cause)));
    await Promise.race([ended, node?.outOfReach?.() ?? ended]);
    // Other hosts end with their agent's connection to this session.
    await node?.close();
  }

  /**
   * Ends all hosts. Resolves when no thread, process or file is left, except on machines that
   * cannot be reached.
   */
  async close(cause: DeathCause): Promise<void> {
    this.#open = false;
    for (const turns of this.#turns.values()) turns.close();
    const nodes = new Set([
      ...this.#nodes.keys(),
      ...Array.from(this.#hosts, (host) => host.nodeId),
    ]);
    await Promise.all(Array.from(nodes, (nodeId) => this.endNode(nodeId, cause)));
    await this.#guard?.close();
  }

  #launch(wish: HostRequest): Host {
    const isThread = wish.isolation === "thread" && this.#nodeOf(wish) === undefined;
    const inherited = isThread ? asForThread(wish.inherited) : wish.inherited;
    const around = mergedEnv(ownEnv(this.#options.runtimeEnv), inherited);
    const runtimeEnv = withEnv(mergedEnv(around, ownEnv(wish.runtimeEnv)), wish.variables);
    const request = { ...wish, runtimeEnv };
    const host = this.#start(request);
    this.#turnsOn(request.nodeId).until(Promise.race([host.ready, host.exited]));
    this.#hosts.add(host);
    void host.exited.then(() => this.#hosts.delete(host));
    this.#options.onLaunch(host);
    return host;
  }

  #start(request: HostRequest): Host {
    const node = this.#nodeOf(request);
    if (node !== undefined) return node.launch(request, this.#options);
    if (request.isolation === "thread") return launchThread(request, this.#options);
    return launchProcess(request, this.#options, (this.#guard ??= new Guard()));
  }
  /** Returns what starts a host elsewhere, where it does: threads of this machine start here. */
  #nodeOf({ nodeId, isolation }: HostRequest): NodeLauncher | undefined {
    const isOwn = nodeId === this.#options.nodeId && isolation === "thread";
    return isOwn ? undefined : this.#nodes.get(nodeId);
  }
}
