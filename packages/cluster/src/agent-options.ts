/** What an agent may be told, checked at the edge by the same rules as the options of `init`. */
import {
  amount,
  type Amounts,
  bytes,
  checkOptions,
  count,
  type CredentialFiles,
  credentialFiles,
  labels,
  offered,
  portNumber,
  secret,
  text,
  timerMs,
} from "@rayling/core/cluster";
import type { WorkerPortOptions } from "./worker-ports.ts";

export interface AgentOptions extends WorkerPortOptions {
  /** What it listens on. Default "127.0.0.1"; anything but a loopback address needs `tls`. */
  readonly host?: string;
  /** By what name drivers reach it, if it listens on all addresses of the machine. Default: the first name in its certificate. */
  readonly publicHost?: string;
  /** Default 0: one that is free. */
  readonly port?: number;
  /** What drivers must have. Default: a new one. */
  readonly token?: string;
  /** Speak TLS only, with those who have a certificate of the same authority: a folder with `ca.pem`, `cert.pem` and `key.pem`, or the path of each. Default: as for `init`. */
  readonly tls?: CredentialFiles;
  readonly nodeName?: string;
  /** Default: as many as the machine has for this process. */
  readonly numCpus?: number;
  /** Amounts of anything else. */
  readonly resources?: Amounts;
  readonly labels?: Readonly<Record<string, string>>;
  /** Hosts of all drivers together. Default 1,000. */
  readonly maxHosts?: number;
  /** Bytes of big values that each host keeps in memory. Default: 30 % of the machine's memory. */
  readonly objectStoreMemory?: number;
  /** How long the connection to a driver may be cut before its hosts end. Default 30,000. */
  readonly reconnectTimeoutMs?: number;
  /** Where code is kept that drivers bring. Default: ".rayling/code" in the user's home; made when it is needed, at the start if it is named. */
  readonly codeCache?: string;
  /** Bytes of code that are kept; what was unused for longest goes. Default 10 GiB. */
  readonly codeCacheBytes?: number;
  /** Bytes of code that one package may have. Default 500 MiB. */
  readonly maxCodeBytes?: number;
  /** Called with each line worth telling. */
  readonly onEvent?: (line: string) => void;
}

/** @throws InvalidOptionError */
export function checkAgentOptions(options: AgentOptions): void {
  checkOptions("startAgent", options, {
    host: text,
    publicHost: text,
    port: portNumber,
    token: secret(text),
    tls: credentialFiles,
    nodeName: text,
    numCpus: amount,
    resources: offered,
    labels,
    maxHosts: count(1),
    minWorkerPort: portNumber,
    maxWorkerPort: portNumber,
    objectStoreMemory: count(1024 * 1024),
    reconnectTimeoutMs: timerMs,
    codeCache: text,
    codeCacheBytes: bytes,
    maxCodeBytes: count(1),
    onEvent: (value) => (typeof value === "function" ? undefined : "must be a function"),
  });
}
