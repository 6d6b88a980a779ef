/**
 * `rayling rewards view`: a page of reward logs in a browser, served until a signal comes.
 */

import { RaySystemError } from "@rayling/core";
import { JsonlError } from "@rayling/data-proto";
import { RewardLogError } from "@rayling/reward-loop/reward-log";
import { refusalOf } from "../cli-error.ts";
import { printPart } from "../output/formats.ts";
import { stopSignal } from "../stop-signal.ts";
import type { RewardsViewOptions } from "./rewards-options.ts";

export async function runRewardsView({ logs, port, format }: RewardsViewOptions): Promise<void> {
  const { serveRewardLogs } = await import("@rayling/dashboard");
  const stop = stopSignal();
  try {
    const page = await stop.race(serveRewardLogs(logs, port === undefined ? {} : { port }));
    await printPart({ url: page.url }, format, () => [page.url, "Ctrl-C ends it"]);
    await stop.whenStopped();
    await page.close();
  } catch (error) {
    const ofFile = refusalOf(error, [JsonlError, RewardLogError]);
    throw ofFile === error ? refusalOf(error, [RaySystemError], "--port") : ofFile;
  } finally {
    stop.close();
  }
}
