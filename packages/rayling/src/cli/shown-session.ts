/** Options of the sessions of commands that show themselves what goes on. */
import type { InitOptions } from "@rayling/core";

/**
 * The command says every two seconds what it waits for: a start on a busy machine, or a slow judge,
 * is reported in detail only where nobody expects it any more.
 */
export const shownSession: Pick<InitOptions, "stuckWarningMs"> = { stuckWarningMs: 60_000 };
