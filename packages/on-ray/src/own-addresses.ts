/** Which addresses are those of this machine. */
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";

/** Whether the address is one of this machine. */
export function isOwnAddress(address: string): boolean {
  if (address.startsWith("127.") || address === "::1") return true;
  const own = Object.values(networkInterfaces()).flatMap((some) => some ?? []);
  return own.some((one) => one.address === address);
}

/** Resolves with whether the host of a URL is this machine; a name that has no address is not. */
export async function isOwnHost(url: string): Promise<boolean> {
  const host = new URL(url).hostname.replaceAll(/^\[|\]$/g, "");
  try {
    return isOwnAddress((await lookup(host)).address);
  } catch {
    // The request to it reports that.
    return false;
  }
}
