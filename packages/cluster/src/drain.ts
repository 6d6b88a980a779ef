/** Tells the agent of a machine to empty it: what runs there goes elsewhere, then the agent ends. */
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
} from "@rayling/core/cluster";
import { addressName, NodeAddressError, parseAddress } from "./address.ts";
import { type DrainReport, type OperatorControl, operatorWay } from "./contract.ts";

export interface DrainAgentOptions {
  /** What has not left the machine by then ends with the agent. */
  readonly timeoutMs: number;
  /** What this machine shows to an agent at a `raylings://` address. Default: as for `init`. */
  readonly tls?: CredentialFiles;
}

/**
 * Resolves when the machine is empty, or the time was over.
 *
 * Rejects with NodeAddressError when there is no agent that takes us, or it is gone before it has answered; with CertificateError for certificates that cannot be used.
 */
export async function drainAgent(
  text: string,
  { timeoutMs, tls }: DrainAgentOptions,
): Promise<DrainReport> {
  const address = parseAddress(text);
  const name = addressName(address);
  const { credentials } = findCredentials(tls, address.isSecure === true) ?? {};
  // Nothing the connection does keeps a process alive; who waits for this is to hear of it.
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
    throw new NodeAddressError(name, (error as Error).message, error);
  } finally {
    clearInterval(alive);
    channel?.close(over);
  }
}

const cutOff: DeathCause = { kind: "unreachable", message: "the connection was cut" };
const over: DeathCause = { kind: "shutdown", message: "it was answered" };
