/**
 * A host process on the machine of an agent: its order, its two channels, and its end, of which the
 * agent or the loss of the machine is the witness.
 */
import { expose, type Remote, wrap } from "comlink";
import {
  type Address,
  asError,
  type Channel,
  causeFromData,
  channelEndpoint,
  controlUntil,
  type DeathCause,
  type dialled,
  type DriverControl,
  type Host,
  type HostControl,
  type LauncherControl,
  RaySystemError,
} from "@rayling/core/cluster";
import type { AgentControl, HostOrder, ShippedCode, StartedHost } from "./contract.ts";

export interface RemoteHostParts {
  /** Rejects when no agent answers. */
  readonly agent: Promise<Remote<AgentControl>>;
  readonly order: Omit<HostOrder, "code">;
  /**
   * Sends the code that the host needs, if it needs some. Rejects when it cannot be sent.
   *
   * @param missing the code that an earlier call sent, and that is no longer there
   */
  readonly code: ((missing?: ShippedCode) => Promise<ShippedCode>) | undefined;
  /** The driver's control contract for this host. */
  readonly answers: DriverControl;
  /** Dials one of its channels, when its address is known. */
  readonly dial: (channel: keyof typeof dialled, to: Dialled) => Channel;
}

/** The host as its channels dial it. */
export interface Dialled {
  readonly hostId: string;
  readonly address: () => Promise<Address>;
  readonly exited: Promise<DeathCause>;
}

export class RemoteHost implements Host {
  readonly id: string;
  readonly nodeId: string;
  readonly isolation = "process";
  readonly isRemote = true;
  readonly ready: Promise<void>;
  readonly exited: Promise<DeathCause>;
  readonly prepared: Promise<DeathCause | undefined> | undefined;
  readonly channel: Channel;
  readonly control: Host["control"];
  readonly #parts: RemoteHostParts;
  readonly #resolveExited: (cause: DeathCause) => void;
  #known: DeathCause | undefined;
  #pid: number | undefined;
  /** Whether the agent has its order, and so reports its end. */
  #isOrdered = false;

  constructor(parts: RemoteHostParts) {
    const { hostId, nodeId } = parts.order.identity;
    this.id = hostId;
    this.nodeId = nodeId;
    this.#parts = parts;
    const { promise: exited, resolve } = Promise.withResolvers<DeathCause>();
    this.exited = exited;
    this.#resolveExited = resolve;
    const brought = parts.code?.();
    this.prepared = brought && this.#prepared(brought);
    const started = this.#start(brought);
    started.then(
      ({ pid }) => (this.#pid = pid),
      // The agent reports the cause of the end; this is the cause when there is no agent.
      (error: Error) => this.end({ kind: "unreachable", message: error.message, error }),
    );
    const address = async (): Promise<Address> => (await started).address;
    const dialledAs: Dialled = { hostId, address, exited };
    const endpoint = channelEndpoint(parts.dial("control", dialledAs));
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    const answers: LauncherControl = {
      ...parts.answers,
      ready: () => ready.resolve(),
      dying: (cause) => this.#dying(causeFromData(cause)),
    };
    expose(answers, endpoint);
    this.control = controlUntil(hostId, wrap<HostControl>(endpoint), exited);
    this.channel = parts.dial("data", dialledAs);
  }

  get pid(): number | undefined {
    return this.#pid;
  }

  /** Handles the report of its end. */
  end(cause: DeathCause): void {
    // A lost link to the host was the first sign of the lost machine; on a busy machine either may
    // be noticed first.
    const isSign = this.#known?.kind === "unreachable" && cause.kind === "node-died";
    this.#resolveExited(isSign ? cause : (this.#known ?? cause));
  }

  async stop(cause: DeathCause): Promise<void> {
    this.#dying(cause);
    await this.control((host) => host.stop());
    await this.terminate(cause);
  }

  async terminate(cause: DeathCause): Promise<void> {
    this.#dying(cause);
    if (!this.#isOrdered) return this.end(cause);
    // The host may not have reported its address: its code may hang before that.
    void this.#parts.agent.then((agent) => agent.terminate(this.id)).catch(() => undefined);
    await this.exited;
  }

  /** Records why it is about to end; the first reason stays. */
  #dying(cause: DeathCause): void {
    this.#known ??= cause;
  }

  /** Returns the failure of its code, which ends it, when the code or the host has settled. */
  async #prepared(code: Promise<ShippedCode>): Promise<DeathCause | undefined> {
    let failure: DeathCause | undefined;
    const brought = code.catch((error: Error) => {
      failure = codeFailed(error);
      this.end(failure);
    });
    await Promise.race([brought, this.exited]);
    return failure;
  }

  async #start(brought: Promise<ShippedCode> | undefined): Promise<StartedHost> {
    const { agent: answering, order } = this.#parts;
    let code = await brought;
    const agent = await answering;
    for (let launches = 1; ; launches++) {
      if (this.#known !== undefined) throw new RaySystemError(this.#known.message);
      this.#isOrdered = true;
      const answer = await agent.launch({ ...order, code });
      if (!("missing" in answer)) return answer;
      this.#isOrdered = false;
      code = await this.#bringAgain(code, launches);
    }
  }

  /**
   * Brings code that was removed from the machine. A failure ends the host, as at the first time.
   */
  async #bringAgain(
    missing: ShippedCode | undefined,
    launches: number,
  ): Promise<ShippedCode | undefined> {
    try {
      if (launches < maxLaunches) return await this.#parts.code?.(missing);
      throw new RaySystemError(
        `its code was removed from the machine ${launches} times before a host could start there: somebody clears the agent's code cache`,
      );
    } catch (error) {
      this.end(codeFailed(asError(error)));
      throw error;
    }
  }
}

/** A cache that is cleared again and again keeps no code for long enough. */
const maxLaunches = 3;

function codeFailed({ message }: Error): DeathCause {
  return { kind: "runtime-env-failed", message };
}
