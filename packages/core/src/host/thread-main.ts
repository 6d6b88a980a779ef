/** Entry point of a host thread. */
import { KeptCode } from "./code/kept-code.ts";
import type * as threadHost from "./thread-host.ts";

/** The file that holds all of this package for a thread, which the build fills in. */
declare const wholeFile: string;

if (typeof wholeFile === "undefined") {
  const { startThread } = await import("./thread-host.ts");
  startThread(() => undefined);
} else {
  const code = new KeptCode(new URL(`../${wholeFile}`, import.meta.url));
  const { startThread } = (await code.load()) as typeof threadHost;
  startThread(() => code.keep());
}
