/** One actor: its row, its calls, and what it wrote. */
import type { DashboardSession, LogLine } from "@rayling/core/dashboard";
import { HttpRefusal } from "@rayling/core/http";
import { logLines } from "./log-lines.ts";
import { askMs } from "./rows.ts";
import type { View } from "./view.ts";

/** Calls that are sent at most. */
const mostCalls = 200;

/** Query: `id`. Rejects with HttpRefusal where there is none of that id. */
export function actorView(session: DashboardSession): View {
  return async (query) => {
    const id = query.get("id") ?? "";
    const asked = { filters: [["actorId", "=", id] as const], detail: true, timeoutMs: askMs };
    const [actors, calls] = await Promise.all([
      session.list("actors", asked),
      session.list("tasks", { ...asked, limit: mostCalls }),
    ]);
    const [actor] = actors.rows;
    if (actor === undefined) {
      throw new HttpRefusal(404, "no_actor", `there is no actor ${id.slice(0, 100)}`);
    }
    return {
      actor,
      calls: { total: calls.total, rows: calls.rows },
      logs: logLines(session, query, (line) => isOf(line, id)),
    };
  };
}

/** A writer is shown as its class and the beginning of its id. */
function isOf({ owner }: LogLine, actorId: string): boolean {
  const shown = owner.slice(owner.lastIndexOf(" ") + 1);
  return shown !== "" && actorId.startsWith(shown);
}
