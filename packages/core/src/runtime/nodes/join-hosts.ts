/**
 * Opens a channel between two hosts: a port between threads, else a connection to a listener, on
 * the other machine or in the other process. A loopback address is unreachable from another
 * machine: the host with such an address dials the other one.
 *
 * The answer is for the requesting host. The other host gets its part first, and has finished it
 * when the requester only has to wait.
 */
import { MessageChannel } from "node:worker_threads";
import { transfer } from "comlink";
import type { Way } from "../../host/host-control.ts";
import { isLoopback } from "../../shared/machine/loopback.ts";
import type { Address } from "../../transport/address.ts";
import type { Host } from "../launch/host.ts";

export async function joinHosts(from: Host, to: Host, wayId: string): Promise<Way> {
  const isRemote = from.isRemote === true;
  if (to.isRemote === true || (to.isolation === "process" && !isRemote)) {
    const address = await addressOf(to);
    if (!isRemote || !isOfOneMachine(address)) return { kind: "dial", address };
    // The driver reaches it by the loopback, so it is on the driver's machine. That machine reaches
    // the other one.
    const other = await addressOf(from);
    return isOfOneMachine(other) ? { kind: "dial", address } : dialFrom(to, from, other, wayId);
  }
  if (isRemote || from.isolation === "process") {
    return dialFrom(to, from, await addressOf(from), wayId);
  }
  const { port1, port2 } = new MessageChannel();
  const way: Way = { kind: "port", port: port1 };
  // If the other host ends before it knows of the channel, messages on it would be lost without any
  // report that their calls never began.
  try {
    await to.control((control) => control.accept(from.id, transfer(way, [port1]), wayId));
  } catch (error) {
    port2.close();
    throw error;
  }
  return transfer({ kind: "port", port: port2 }, [port2]);
}

/** Makes the other host dial; the requester waits. */
async function dialFrom(to: Host, from: Host, address: Address, wayId: string): Promise<Way> {
  await to.control((control) => control.accept(from.id, { kind: "dial", address }, wayId));
  return { kind: "incoming" };
}

function addressOf(host: Host): Promise<Address> {
  return host.control((control) => control.address());
}

/** Whether an address is reachable only from its own machine. */
function isOfOneMachine({ place }: Address): boolean {
  return !("host" in place) || isLoopback(place.host);
}
