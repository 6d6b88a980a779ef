/** Addresses that only reach the machine itself, or name all of its addresses, however written. */
import { BlockList, isIP } from "node:net";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

const unspecified = new BlockList();
unspecified.addAddress("0.0.0.0", "ipv4");
unspecified.addAddress("::", "ipv6");

/** Whether a host is reachable under that name only from its own machine. */
export function isLoopback(host: string): boolean {
  return host.toLowerCase() === "localhost" || isIn(loopback, host);
}

/** Whether who listens there listens on all addresses of the machine. */
export function isUnspecified(host: string): boolean {
  return isIn(unspecified, host);
}

/** @param host an IPv6 address may stand in brackets, and may have a zone */
function isIn(list: BlockList, host: string): boolean {
  const address = host.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, "");
  const family = isIP(address);
  // An IPv4 address that is written as an IPv6 one is found by its IPv4 form.
  return family !== 0 && list.check(address, family === 4 ? "ipv4" : "ipv6");
}
