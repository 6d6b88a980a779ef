/** Lets `init` of this package use other machines: agents, and Ray clusters. Each loads when needed. */
import { provideEngine, provideNodes } from "@rayling/core/cluster";

export function provideOtherMachines(): void {
  provideNodes(async () => (await import("@rayling/cluster")).nodeJoiner());
  for (const scheme of ["ray+http", "ray+https", "auto"]) {
    provideEngine(async () => (await import("@rayling/on-ray")).openOnRay, scheme);
  }
}
