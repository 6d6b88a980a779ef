/** What a driver and an agent say to each other, by comlink over one link: the agent starts hosts, the driver hears of them. */
import type { Address, Amounts, CauseData, HostIdentity, RuntimeEnv } from "@rayling/core/cluster";
import type { WrittenLine } from "./host-output.ts";

/** What a machine has, told to a driver that joins it. */
export interface NodeOffer {
  /** Unlike those of all other agents, whatever they are called and wherever they are reached. */
  readonly agentId: string;
  readonly nodeName: string;
  /** What the machine calls itself. */
  readonly hostname: string;
  /** CPUs that its hosts can have, whatever it offers. */
  readonly parallelism: number;
  readonly resources: Amounts;
  readonly labels: Readonly<Record<string, string>>;
  readonly code: CodeOffer;
}

/** What code a machine can take. */
export interface CodeOffer {
  /** As `process.platform` and `process.arch`: "linux-x64". */
  readonly platform: string;
  readonly maxPackageBytes: number;
}

/** A package of code that a driver brought to a machine. */
export interface ShippedCode {
  /** The SHA-256 of its bytes (code/stream.ts). */
  readonly id: string;
  /** The URL that its root has at the driver; it ends in "/". */
  readonly rootUrl: string;
  /** Where hosts are to be, seen from the root; "" is the root. */
  readonly directory: string;
  /** rayling's own packages: the URLs of their folders at the driver, by name. */
  readonly runtime: Readonly<Record<string, string>>;
}

/** A host that a driver wants. */
export interface HostOrder {
  readonly identity: HostIdentity;
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The module it is started for, if that is known. */
  readonly moduleUrl: string | undefined;
  /** What it runs; none: what lies at the same paths on that machine. */
  readonly code: ShippedCode | undefined;
  readonly isDevelopment: boolean;
  /** Bytes of big values that it keeps in memory, if the driver says. */
  readonly objectStoreMemory?: number;
  /** By what name the driver reaches the machine. */
  readonly publicHost: string;
}

/** Where a host can be dialled that was started. */
export interface StartedHost {
  readonly address: Address;
  readonly pid: number | undefined;
}

/** Packages of code that a driver may be sending at the same time. */
export const maxCodeOnTheWay = 4;

/** How a driver brings its code. What is rejected with leaves nothing behind. */
export interface CodeControl {
  /** Whether the package is there; if so, it is kept until the driver is gone. */
  hasCode(id: string): Promise<boolean>;
  /** Begins to send it. */
  openCode(id: string): Promise<void>;
  /** The next portion of the package, compressed by gzip; resolves when more may come. */
  writeCode(id: string, portion: Uint8Array): Promise<void>;
  /** It was all; resolves when it was checked and is there, as with `hasCode`. */
  closeCode(id: string): Promise<void>;
  dropCode(id: string): Promise<void>;
}

/** Driver to agent. */
export interface AgentControl extends CodeControl {
  describe(): NodeOffer;
  /** It makes this machine a node: what it has here over other links, which it has given up, ends. */
  takeOver(): void;
  /** Answers. */
  ping(): void;
  /** Rejects when the host ended before it could be dialled; `exited` follows in any case. */
  launch(order: HostOrder): Promise<StartedHost>;
  /** Ends a host and what it started; `exited` follows. */
  terminate(hostId: string): void;
}

/** What became of a machine that was emptied. */
export interface DrainReport {
  /** Hosts that left in time. */
  readonly left: number;
  /** Hosts that had not, and were ended. */
  readonly ended: number;
}

/** Who runs a machine, to its agent. */
export interface OperatorControl {
  /** Lets what is there go elsewhere, then ends the agent, at `timeoutMs` at the latest; answers before it ends. */
  drain(timeoutMs: number): Promise<DrainReport>;
}

/** The way by which an operator speaks to an agent. */
export const operatorWay = "operator";

/** Agent to driver. */
export interface DriverAnswers {
  /** The machine is to be left within that time. When this has answered, the driver orders no more hosts. */
  draining(timeoutMs: number): void;
  exited(hostId: string, cause: CauseData): void;
  /** Takes what hosts wrote, in its order; answers when more may come. */
  wrote(lines: readonly WrittenLine[]): void;
}

/** How long a cut may last if nobody says, in ms. */
export const standardReconnectTimeoutMs = 30_000;
