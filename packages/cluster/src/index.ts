/** Other machines for the actor runtime: `init({ nodes: ["rayling://token@host:port"] })` and the agents that answer there. */
import { provideNodes } from "@rayling/core/cluster";

export { NodeAddressError } from "./address.ts";
export { type Agent, type AgentOptions, startAgent } from "./agent.ts";
export { joinNode } from "./join.ts";

provideNodes(async () => (await import("./join.ts")).joinNode);
