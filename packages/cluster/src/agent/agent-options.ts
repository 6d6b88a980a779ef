/**
 * The options of an agent, checked by the rules of the options of `init`.
 */
import {
  amount,
  type Amounts,
  bytes,
  checkOptions,
  count,
  type CredentialFiles,
  type Credentials,
  credentialFiles,
  labels,
  offered,
  portNumber,
  secret,
  text,
  timerMs,
} from "@rayling/core/cluster";
import type { WorkerPortOptions } from "./worker-ports.ts";

/** Where an agent listens, and how much of the machine it offers. */
export interface AgentOptions extends WorkerPortOptions {
  /**
   * The address to listen on. Default "127.0.0.1"; any other address than the loopback needs `tls`.
   */
  readonly host?: string;
  /**
   * The host name for drivers, if the agent listens on all addresses of the machine. Default: the
   * first name in its certificate.
   */
  readonly publicHost?: string;
  /** The port to listen on. Default 0: a free one. */
  readonly port?: number;
  /** The token that drivers need. Default: a new one. */
  readonly token?: string;
  /**
   * Speaks only TLS, with peers that have a certificate of the same authority: a folder with
   * `ca.pem`, `cert.pem` and `key.pem`, or the path of each. Default: as for `init`.
   */
  readonly tls?: CredentialFiles;
  /** The credentials themselves, as PEM, in place of `tls`. Default: none. */
  readonly credentials?: Credentials;
  /** The name of the node. Default: the host name of the machine. */
  readonly nodeName?: string;
  /** CPUs that the machine offers. Default: the CPUs that this process may use. */
  readonly numCpus?: number;
  /** Amounts of other resources. Default: none. */
  readonly resources?: Amounts;
  /** Labels of the node, by which actors and tasks choose it. Default: none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The most hosts of all drivers together. Default 1,000. */
  readonly maxHosts?: number;
  /**
   * The bytes of big values that each host keeps in memory. Default: 30 % of the machine's memory.
   */
  readonly objectStoreMemory?: number;
  /**
   * How long the connection to a driver may be cut, in ms, before its hosts end. Default 30,000.
   */
  readonly reconnectTimeoutMs?: number;
  /**
   * The folder for the drivers' code. Default: ".rayling/code" in the user's home. A default folder
   * is made on first use, and a named one at the start.
   */
  readonly codeCache?: string;
  /**
   * The most bytes of code in the cache; the least recently used package goes first. Default 10
   * GiB.
   */
  readonly codeCacheBytes?: number;
  /** The most bytes of code in one package. Default 500 MiB. */
  readonly maxCodeBytes?: number;
  /** Called with each line for the operator. */
  readonly onEvent?: (line: string) => void;
}

function isCredentials(value: unknown): value is Credentials {
  if (typeof value !== "object" || value === null) return false;
  return (["ca", "cert", "key"] as const).every(
    (name) => typeof Reflect.get(value, name) === "string",
  );
}

/** @throws InvalidOptionError */
export function checkAgentOptions(options: AgentOptions): void {
  checkOptions("startAgent", options, {
    host: text,
    publicHost: text,
    port: portNumber,
    token: secret(text),
    tls: credentialFiles,
    credentials: secret((value) =>
      isCredentials(value) ? undefined : "must be { ca, cert, key }",
    ),
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
