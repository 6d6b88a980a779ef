/**
 * How long the loop's own waits may take before the runtime calls them stuck: a judge may well take
 * 40 s, and an unlimited wait is reported after a while.
 */

import type { GetOptions } from "@rayling/core";

/** For a score, and for what a limit holds back. */
export const PATIENT: Pick<Required<GetOptions>, "stuckWarningMs"> = { stuckWarningMs: 600_000 };

/** For what comes when something changes, or never. */
export const WHENEVER: Pick<Required<GetOptions>, "stuckWarningMs"> = { stuckWarningMs: 0 };
