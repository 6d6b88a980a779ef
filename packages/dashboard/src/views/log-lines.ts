/** The last lines that actors and tasks wrote. */
import type { DashboardSession, LogLine } from "@rayling/core/dashboard";

/** Lines that are sent at most. */
const mostLines = 200;

export interface LogTail {
  /** False: the session does not collect what its hosts write (logToDriver). */
  readonly isCollected: boolean;
  readonly lines: readonly LogLine[];
}

/**
 * Query: `text` that a line must contain.
 *
 * @param isWanted undefined: of all writers
 */
export function logLines(
  session: DashboardSession,
  query: URLSearchParams,
  isWanted: (line: LogLine) => boolean = () => true,
): LogTail {
  const text = (query.get("text") ?? "").toLowerCase();
  const kept: LogLine[] = [];
  let from = 0;
  for (;;) {
    const part = session.logs(from);
    if (part === undefined) return { isCollected: false, lines: [] };
    kept.push(...part.lines.filter((line) => isWanted(line) && hasText(line, text)));
    if (part.next === part.written) break;
    from = part.next;
  }
  return { isCollected: true, lines: kept.slice(-mostLines) };
}

function hasText({ owner, text }: LogLine, wanted: string): boolean {
  return wanted === "" || `${owner} ${text}`.toLowerCase().includes(wanted);
}
