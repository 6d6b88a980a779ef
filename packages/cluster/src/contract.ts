/** What a driver and an agent say to each other, by comlink over one link: the agent starts hosts, the driver hears of them. */
import type {
  Address,
  Amounts,
  CauseData,
  HostIdentity,
  OutputStream,
  RuntimeEnv,
} from "@rayling/core/cluster";

/** What a machine has, told to a driver that joins it. */
export interface NodeOffer {
  readonly nodeName: string;
  readonly resources: Amounts;
  readonly labels: Readonly<Record<string, string>>;
}

/** A host that a driver wants. */
export interface HostOrder {
  readonly identity: HostIdentity;
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The module it is started for, if that is known. */
  readonly moduleUrl: string | undefined;
  readonly isDevelopment: boolean;
  /** Bytes of big values that it keeps in memory, if the driver says. */
  readonly objectStoreMemory?: number;
  /** By what name the driver reaches the machine. */
  readonly publicHost: string;
  /** How long a connection to another machine may be cut. */
  readonly reconnectTimeoutMs?: number;
}

/** Where a host can be dialled that was started. */
export interface StartedHost {
  readonly address: Address;
  readonly pid: number | undefined;
}

/** Driver to agent. */
export interface AgentControl {
  describe(): NodeOffer;
  /** Rejects when the host ended before it could be dialled; `exited` follows in any case. */
  launch(order: HostOrder): Promise<StartedHost>;
  /** Ends a host and what it started; `exited` follows. */
  terminate(hostId: string): void;
}

/** Agent to driver. */
export interface DriverAnswers {
  exited(hostId: string, cause: CauseData): void;
  /** A line that a host wrote; `owner` is the actor or task, or "". */
  wrote(hostId: string, stream: OutputStream, owner: string, line: string): void;
}
