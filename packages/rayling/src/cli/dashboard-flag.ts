/**
 * The flag of commands whose session can serve a live page.
 */
import type { InitOptions } from "@rayling/core";
import { addDashboardPanel, provideDashboard } from "@rayling/core/dashboard";
import type { Command } from "commander";

/** Undefined: neither --dashboard nor --no-dashboard was given. */
export interface DashboardFlag {
  readonly dashboard?: boolean | undefined;
}

/**
 * Where the page is not served by default, asking for it is `--watch`, too.
 *
 * @param byDefault when the page is served without the flag
 */
export function addDashboardFlag(command: Command, byDefault: "never" | "on a terminal"): Command {
  const text = "serve a live page of the session, whose link goes to stderr";
  if (byDefault === "never") return command.option("--watch, --dashboard", text);
  return command
    .option("--dashboard", `${text} (default: where stderr is a terminal)`)
    .option("--no-dashboard", "serve no page");
}

/** Returns the option of `init`. */
export function dashboardOption(
  { dashboard }: DashboardFlag,
  byDefault: "never" | "on a terminal",
): Pick<InitOptions, "dashboard"> {
  const isWanted = dashboard ?? (byDefault === "on a terminal" && process.stderr.isTTY);
  if (!isWanted) return {};
  provideDashboard(async () => (await import("@rayling/dashboard")).serveSession);
  return { dashboard: true };
}

/** Shows the samples of a reward log, which is being written, on the page of this session. */
export function showOnDashboard(rewardLog: string): void {
  addDashboardPanel({ kind: "rewardLog", rewardLog, state: async () => undefined });
}
