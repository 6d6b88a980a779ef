/** The views of a session: its state at the moment at which it is asked. */
import type { DashboardSession } from "@rayling/core/dashboard";
import { actorView } from "./actor-view.ts";
import { logLines } from "./log-lines.ts";
import { overviewOf } from "./overview.ts";
import { panelsOf } from "./panels.ts";
import { listed, rowsOf } from "./rows.ts";
import type { Views } from "./view.ts";

export function sessionViews(session: DashboardSession): Views {
  return {
    overview: overviewOf(session),
    ...Object.fromEntries(listed.map((what) => [what, rowsOf(session, what)])),
    actor: actorView(session),
    loops: panelsOf("rewardLoop"),
    logs: async (query) => logLines(session, query),
  };
}
