/**
 * Tells the agent of a machine to drain it: hosts move elsewhere, then the agent ends.
 */
import { type Remote, wrap } from "comlink";
import {
  channelEndpoint,
  type Channel,
  type CredentialFiles,
  type DeathCause,
  dialOnce,
  findCredentials,
  newId,
  RaySystemError,
  asError,
} from "@rayling/core/cluster";
import { addressName, NodeAddressError, parseAddress } from "../address.ts";
import { type DrainReport, type OperatorControl, operatorWay } from "../contract.ts";

/** How long a drain takes, and how the agent is reached. */
export interface DrainAgentOptions {
  /** The time to leave the machine, in ms; remaining hosts end with the agent. */
  readonly timeoutMs: number;
  /**
   * The TLS credentials of this machine for an agent at a `raylings://` address. Default: as for
   * `init`.
   */
  readonly tls?: CredentialFiles;
}

/**
 * Resolves when the machine is empty, or the time is over.
 *
 * Rejects with NodeAddressError when no agent accepts this operator, or the agent is gone before it
 * has answered; with CertificateError for unusable certificates.
 */
export async function drainAgent(
  text: string,
  { timeoutMs, tls }: DrainAgentOptions,
): Promise<DrainReport> {
  const address = parseAddress(text);
  const name = addressName(address);
  const { credentials } = findCredentials(tls, address.isSecure === true) ?? {};
  // The connection keeps no process alive, but the caller waits for the report.
  const alive = setInterval(() => undefined, 2 ** 30);
  let channel: Channel | undefined;
  try {
    channel = await dialOnce(
      address,
      { peerId: newId("operator"), wayId: operatorWay },
      {
        peerId: `the agent at ${address.place.host}:${address.place.port}`,
        explain: async () => cutOff,
        network: credentials === undefined ? {} : { credentials },
      },
    );
    const agent: Remote<OperatorControl> = wrap(channelEndpoint(channel));
    const lost = channel.closed.then(() => {
      throw new RaySystemError("the agent was ended before it was drained");
    });
    return await Promise.race([agent.drain(timeoutMs), lost]);
  } catch (error) {
    throw new NodeAddressError(name, asError(error).message, error);
  } finally {
    clearInterval(alive);
    channel?.close(over);
  }
}

const cutOff: DeathCause = { kind: "unreachable", message: "the connection was cut" };
const over: DeathCause = { kind: "shutdown", message: "it was answered" };
