/**
 * Reports facts about a request from the client to the loop: its chat, the usage, which is paid for
 * even if the answer is dropped, and its failure, which may be all that is known of a function that
 * asks again until its time is over. What paces requests is announced as the scorers announce it
 * (`announced` of the registry's values).
 *
 * Reports travel over channels of node:diagnostics_channel, because the client is loaded without
 * the loop, in the async context of the score function, which tells the loop whose call it was.
 */

import { channel } from "node:diagnostics_channel";
import { usageOf } from "../spend/usage.ts";
import type { ChatAnswer } from "./chat-answer.ts";

type Channel = ReturnType<typeof channel>;

/** A chat completion that has been asked for. */
export interface AnnouncedChat {
  readonly url: string;
  /** The body of the request. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly answer: Promise<ChatAnswer>;
}

/** The thread's channel for AnnouncedChat: published in the context of the score function. */
export const chats: Channel = channel("rayling.endpoint.chat");

/** The thread's channel for TokenUsage, one message for each answer. */
export const uses: Channel = channel("rayling.endpoint.used");

/** The thread's channel for errors of failed requests, which may be sent again. */
export const failures: Channel = channel("rayling.endpoint.failed");

/** Reports a failed request to the loop, and returns its error. */
export function noteFailure<Failure>(error: Failure): Failure {
  if (failures.hasSubscribers) failures.publish(error);
  return error;
}

/**
 * Reports an answer's usage to the loop, for score functions with a client of their own. It counts
 * together with other reports of the attempt, also if the function throws or is given up. Does
 * nothing outside of a loop.
 *
 * @param usage in the form of the endpoint or the AI SDK; a malformed one counts nothing
 */
export function noteUsage(usage: unknown): void {
  if (!uses.hasSubscribers) return;
  const used = usageOf({ usage });
  if (used !== undefined) uses.publish(used);
}
