/**
 * How long the loop's own waits may take before the runtime calls them stuck: a judge may well take
 * 40 s, and an unlimited wait is reported after a while.
 */

import type { GetOptions } from "@rayling/core";

/** For scores, and for calls that a limit delays. */
export const PATIENT: Pick<Required<GetOptions>, "stuckWarningMs"> = { stuckWarningMs: 600_000 };

/** For waits that end when something changes, or never. */
export const WHENEVER: Pick<Required<GetOptions>, "stuckWarningMs"> = { stuckWarningMs: 0 };
