/**
 * Spans of chat completions that a score function asks for by the client of this package, with the
 * attributes of OpenTelemetry's conventions for generative AI. Texts are in them only if
 * OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is "true".
 *
 * Invariant: nothing here throws, whatever is asked and wherever. An error in a channel is uncaught
 * in its thread, and would end it with all of its samples.
 */

import * as ray from "@rayling/core";
import { isRecord, messageOf } from "@rayling/reward-manager-registry/values";
import { chats } from "../client/announced.ts";
import type { AnnouncedChat } from "../client/announced.ts";

/** As OpenTelemetry numbers it. */
const clientKind = 2;

/** Makes spans of this thread's chats, where the user provides OpenTelemetry. */
export function traceChats(): void {
  // Several executors may share this thread.
  if (chats.hasSubscribers) return;
  chats.subscribe((chat) => spanOf(chat as AnnouncedChat));
}

function spanOf({ url, request, answer }: AnnouncedChat): void {
  // Its caller has the rejection.
  answer.catch(() => undefined);
  const tracing = ray.currentTracing();
  if (tracing === undefined) return;
  const { api, tracer } = tracing;
  const { model, temperature, max_tokens: maxTokens, messages } = request;
  const name = typeof model === "string" ? model : typeof model;
  const attributes = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": name,
    ...(typeof temperature === "number" ? { "gen_ai.request.temperature": temperature } : {}),
    ...(typeof maxTokens === "number" ? { "gen_ai.request.max_tokens": maxTokens } : {}),
    ...serverOf(url),
    ...(hasTexts() ? inputOf(messages) : {}),
  };
  const options = { kind: clientKind, attributes };
  const span = tracer.startSpan(`chat ${name}`, options, api.context.active());
  answer.then(
    ({ raw, usage, finishReason, text }) => {
      const { model: answered, id } = isRecord(raw) ? raw : {};
      if (typeof answered === "string") span.setAttribute("gen_ai.response.model", answered);
      if (typeof id === "string") span.setAttribute("gen_ai.response.id", id);
      if (finishReason !== undefined) {
        span.setAttribute("gen_ai.response.finish_reasons", [finishReason]);
      }
      if (usage !== undefined) {
        span.setAttribute("gen_ai.usage.input_tokens", usage.prompt_tokens);
        span.setAttribute("gen_ai.usage.output_tokens", usage.completion_tokens);
      }
      if (hasTexts()) {
        const said = [{ role: "assistant", parts: [{ type: "text", content: text }] }];
        span.setAttribute("gen_ai.output.messages", JSON.stringify(said));
      }
      span.end();
    },
    (error: unknown) => {
      const { code } = isRecord(error) ? error : {};
      span.setAttribute("error.type", typeof code === "string" ? code : "Error");
      span.setStatus({ code: 2, message: messageOf(error) });
      span.end();
    },
  );
}

/** Returns nothing for a URL that cannot be asked. */
function serverOf(url: string): Record<string, string | number> {
  if (!URL.canParse(url)) return {};
  const { hostname, port } = new URL(url);
  return { "server.address": hostname, ...(port === "" ? {} : { "server.port": Number(port) }) };
}

/** Returns nothing for messages that JSON cannot carry: they are not sent; the answer says why. */
function inputOf(messages: unknown): Record<string, string> {
  try {
    return { "gen_ai.input.messages": JSON.stringify(messages) };
  } catch {
    return {};
  }
}

function hasTexts(): boolean {
  return process.env["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] === "true";
}
