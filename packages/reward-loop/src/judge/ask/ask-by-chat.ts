/** A judge asked by this package's own client. */

import { chatComplete } from "../../client/chat-complete.ts";
import type { ChatOptions } from "../../client/chat-complete.ts";
import { askByChatOptions } from "../../options/defaults/asking.ts";
import type { TableOf } from "../../options/defaults/calls.ts";
import { checkOptions } from "../../options/read.ts";
import type { Ask } from "./ask.ts";
import { responseFormatOf } from "./response-format.ts";
import type { AnswerFormat } from "./response-format.ts";
import { withText } from "./with-text.ts";

export interface AskByChatOptions extends Omit<ChatOptions, "messages" | "signal"> {
  /** The form of the answer that the request demands. Default "json_schema". */
  readonly format?: AnswerFormat | undefined;
}

/** @param given options of chatComplete, for all questions. Throws RewardLoopOptionError. */
export function askByChat(given: AskByChatOptions): Ask {
  checkOptions(askByChatOptions satisfies TableOf<AskByChatOptions>, given, "askByChat");
  const { format, ...options } = given;
  return async ({ messages, signal, ...question }) => {
    const answer = await chatComplete({
      ...options,
      messages,
      signal,
      body: { ...responseFormatOf(question, format), ...options.body },
    });
    return withText(answer, options.baseUrl);
  };
}
