/**
 * The contract of a driver and an agent, spoken through comlink over one link: the agent starts
 * hosts, and reports them to the driver.
 */
import type { Address, Amounts, CauseData, HostIdentity, RuntimeEnv } from "@rayling/core/cluster";
import type { WrittenLine } from "./agent/host-output.ts";

/** A machine's offer to a driver that joins it. */
export interface NodeOffer {
  /** Unique among all agents, whatever their names and addresses. */
  readonly agentId: string;
  readonly nodeName: string;
  /** The machine's own host name. */
  readonly hostname: string;
  /** CPUs that its hosts can use, whatever it offers. */
  readonly parallelism: number;
  readonly resources: Amounts;
  readonly labels: Readonly<Record<string, string>>;
  readonly code: CodeOffer;
}

/** The code that a machine accepts. */
export interface CodeOffer {
  /** `process.platform` and `process.arch`: "linux-x64". */
  readonly platform: string;
  readonly maxPackageBytes: number;
}

/** A package of code that a driver sent to a machine. */
export interface ShippedCode {
  /** The SHA-256 of its bytes (code/stream.ts). */
  readonly id: string;
  /** The URL of its root at the driver; it ends in "/". */
  readonly rootUrl: string;
  /** The working directory of hosts, relative to the root; "" is the root. */
  readonly directory: string;
  /** rayling's own packages: the URLs of their folders at the driver, by name. */
  readonly runtime: Readonly<Record<string, string>>;
}

/** A driver's order for a host. */
export interface HostOrder {
  readonly identity: HostIdentity;
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The module that it is started for, if that is known. */
  readonly moduleUrl: string | undefined;
  /** The code that it runs; without it, the files at the driver's paths on that machine. */
  readonly code: ShippedCode | undefined;
  readonly isDevelopment: boolean;
  /** The bytes of big values that it keeps in memory, if the driver sets them. */
  readonly objectStoreMemory?: number;
  /** The host name by which the driver reaches the machine. */
  readonly publicHost: string;
}

/** The address of a started host. */
export interface StartedHost {
  readonly address: Address;
  readonly pid: number | undefined;
}

/**
 * The answer to an order whose code was brought, and is no longer whole: somebody cleared the
 * cache. No host was started; the driver brings the code again.
 */
export interface CodeMissing {
  readonly missing: "code";
}

/** The most packages of code that a driver may send at a time. */
export const maxCodeOnTheWay = 4;

/** The calls that send a driver's code. A rejected call leaves nothing behind. */
export interface CodeControl {
  /** Whether the package is there; if so, it is kept until the driver is gone. */
  hasCode(id: string): Promise<boolean>;
  /** Begins a transfer. */
  openCode(id: string): Promise<void>;
  /** Sends the next portion of the package, compressed by gzip; resolves when more may come. */
  writeCode(id: string, portion: Uint8Array): Promise<void>;
  /** Ends a transfer; resolves when the package is checked and kept, as with `hasCode`. */
  closeCode(id: string): Promise<void>;
  dropCode(id: string): Promise<void>;
}

/** The calls of a driver to an agent. */
export interface AgentControl extends CodeControl {
  describe(): NodeOffer;
  /**
   * Makes this machine a node through this link: whatever the driver has here through other links,
   * which it has abandoned, ends.
   */
  takeOver(): void;
  /** Answers. */
  ping(): void;
  /**
   * Starts a host. Rejects when it ended before it could be dialled; `exited` follows whenever one
   * was started.
   */
  launch(order: HostOrder): Promise<StartedHost | CodeMissing>;
  /** Ends a host and its child processes; `exited` follows. */
  terminate(hostId: string): void;
}

/** The calls of an agent to a driver. */
export interface DriverAnswers {
  exited(hostId: string, cause: CauseData): void;
  /** Takes the output of hosts in order; answers when more may come. */
  wrote(lines: readonly WrittenLine[]): void;
}

/** The default of the longest cut, in ms. */
export const standardReconnectTimeoutMs = 30_000;
