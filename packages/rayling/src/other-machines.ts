/**
 * Lets `init` use other machines: agents, and Ray clusters. The code for each loads when it is
 * needed.
 */
import { provideEngine, provideNodes } from "@rayling/core/cluster";

export function provideOtherMachines(): void {
  provideNodes(async () => (await import("@rayling/cluster")).nodeJoiner());
  for (const scheme of ["ray+http", "ray+https", "auto"]) {
    provideEngine(async () => (await import("@rayling/on-ray")).openOnRay, scheme);
  }
}
