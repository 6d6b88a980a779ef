/**
 * Other machines for the actor runtime: `init({ nodes: ["rayling://token@host:port"] })` and the
 * agents that answer there.
 */
import { provideNodes } from "@rayling/core/cluster";

export { CertificateError, type CredentialFiles } from "@rayling/core/cluster";

export { NodeAddressError, parseAddress } from "./address.ts";
export { type Agent, startAgent } from "./agent/agent.ts";
export type { AgentOptions } from "./agent/agent-options.ts";
export { type CertificateOptions, type MadeCertificate, makeCertificate } from "./certificates.ts";
export { joinNode, nodeJoiner } from "./join.ts";
export { RemoteNode } from "./remote-node.ts";
export {
  type MachineKey,
  makeMachineKey,
  selfSigned,
  SessionAuthority,
} from "./session-tls/session-authority.ts";
export { type ClassCode, readClassCode } from "./collect/class-code.ts";
export { listRuntime, type RuntimeListing } from "./collect/runtime-listing.ts";
export { defaultTokenFile, readToken, TokenFileError } from "./token-file.ts";

/**
 * Lets `init` of @rayling/core join the machines in its option `nodes`. An import of `rayling`
 * already does this.
 */
export function enableNodes(): void {
  provideNodes(async () => (await import("./join.ts")).nodeJoiner());
}
