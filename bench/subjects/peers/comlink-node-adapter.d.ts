/** comlink ships this file's types under a name that TypeScript does not look for. */
declare module "comlink/dist/esm/node-adapter.mjs" {
  import type { Endpoint } from "comlink";
  import type { NodeEndpoint } from "comlink/dist/esm/node-adapter.d.ts";

  export default function nodeEndpoint(endpoint: NodeEndpoint): Endpoint;
}
