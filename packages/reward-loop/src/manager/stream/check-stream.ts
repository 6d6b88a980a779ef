/** The samples and options of a stream, checked before any sample is read. */

import { isRecord } from "@rayling/reward-manager-registry/values";
import { groupOptions, streamOptions } from "../../options/defaults/calls.ts";
import type { TableOf } from "../../options/defaults/calls.ts";
import { checkOptions, notAnOption } from "../../options/read.ts";
import type { ScoreStreamOptions } from "./score-stream.ts";
import type { StreamGroups } from "./stream-groups.ts";

/** Throws RewardLoopOptionError. */
export function checkStream(samples: unknown, options: object): void {
  groupOptions satisfies TableOf<StreamGroups>;
  checkOptions(streamOptions satisfies TableOf<ScoreStreamOptions>, options);
  const isMany = Array.isArray(samples) || isIterable(samples);
  if (!isMany) notAnOption("samples", "an iterable or async iterable of samples", samples);
}

/** A text is one, too, of characters: they are no samples. */
function isIterable(samples: unknown): boolean {
  return isRecord(samples) && (Symbol.asyncIterator in samples || Symbol.iterator in samples);
}
