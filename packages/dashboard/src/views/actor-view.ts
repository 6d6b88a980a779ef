/** One actor: its row, its calls, and what it wrote. */
import type { DashboardSession, LogLine } from "@rayling/core/dashboard";
import { HttpRefusal } from "@rayling/core/http";
import { logLines } from "./log-lines.ts";
import type { LogTail } from "./log-lines.ts";
import { askMs, plainRow } from "./rows.ts";
import type { Row } from "./rows.ts";
import type { View } from "./view.ts";

/** Calls that are sent at most. */
const mostCalls = 200;

export interface ActorAnswer {
  readonly actor: Row;
  readonly calls: { readonly total: number; readonly rows: readonly Row[] };
  readonly logs: LogTail;
}

/** Query: `id`. Rejects with HttpRefusal where there is none of that id. */
export function actorView(session: DashboardSession): View {
  return async (query): Promise<ActorAnswer> => {
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
      actor: plainRow(actor),
      calls: { total: calls.total, rows: calls.rows.map(plainRow) },
      logs: logLines(session, query, (line) => isOf(line, id)),
    };
  };
}

/** A writer is shown as its class and the beginning of its id. */
function isOf({ owner }: LogLine, actorId: string): boolean {
  const shown = owner.slice(owner.lastIndexOf(" ") + 1);
  return shown !== "" && actorId.startsWith(shown);
}
