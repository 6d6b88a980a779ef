/** A judge that is a model of Vercel's AI SDK, by any of its providers. */

import { noteUsage } from "../../client/announced.ts";
import type { Ask } from "./ask.ts";
import { withText } from "./with-text.ts";

/** The SDK's `generateText`, as far as it is used. */
// The SDK's own types are stricter than what goes through it.
// oxlint-disable-next-line typescript/no-explicit-any
export type GenerateText = (options: any) => PromiseLike<{
  readonly text: string;
  readonly finishReason: string;
  readonly usage: unknown;
  readonly totalUsage?: unknown;
}>;

/**
 * @param options of generateText for all questions: `model`, and any other setting. maxRetries is
 * 0: the loop retries, within the limits of all workers.
 */
export function askByAiSdk(
  generateText: GenerateText,
  options: Readonly<Record<string, unknown>> & { readonly model: unknown },
): Ask {
  return async ({ messages, signal }) => {
    const system = messages.filter(({ role }) => role === "system").map(({ content }) => content);
    const answer = await generateText({
      maxRetries: 0,
      ...options,
      ...(system.length === 0 ? {} : { system: system.join("\n\n") }),
      messages: messages.filter(({ role }) => role !== "system"),
      ...(signal === undefined ? {} : { abortSignal: signal }),
    });
    const { text, finishReason, totalUsage, usage = totalUsage } = answer;
    noteUsage(usage);
    return withText({ text, finishReason, usage }, "the model");
  };
}
