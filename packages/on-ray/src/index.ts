/**
 * Sessions on a Ray cluster: `init({ address: "ray+http://head:8265" })`. Ray places and reserves,
 * and TypeScript runs where it says.
 */
import { provideEngine } from "@rayling/core/cluster";

export { openOnRay } from "./engine.ts";

/**
 * Lets `init` of @rayling/core take the address of a Ray cluster. An import of `rayling` already
 * does this.
 */
export function enableOnRay(): void {
  for (const scheme of ["ray+http", "ray+https", "auto"]) {
    provideEngine(async () => (await import("./engine.ts")).openOnRay, scheme);
  }
}
