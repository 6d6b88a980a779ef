/**
 * The error that ends the rendering of a chat template, and the three ways to say so. Knows
 * nothing of templates.
 */

export type ChatTemplateErrorCode =
  /** The model has no chat template, or none of the name that is needed. */
  | "NO_CHAT_TEMPLATE"
  /** The template is not Jinja. */
  | "CHAT_TEMPLATE_SYNTAX"
  /** Jinja has it, and it is not done here: `feature` names it. */
  | "CHAT_TEMPLATE_UNSUPPORTED"
  /** The template calls raise_exception: these messages are not for it. */
  | "CHAT_TEMPLATE_REFUSED"
  /**
   * transformers fails here, too: no messages, an attribute of what is undefined, a text plus a
   * number.
   */
  | "CHAT_TEMPLATE_FAILED";

export interface ChatTemplateErrorFields {
  readonly line?: number | undefined;
  readonly feature?: string | undefined;
  readonly cause?: unknown;
}

/**
 * A chat template cannot be read, or does not render these messages. Never is there another text
 * in place of it.
 */
export class ChatTemplateError extends Error {
  override readonly name = "ChatTemplateError";
  readonly code: ChatTemplateErrorCode;
  /** The reason without the place. */
  readonly reason: string;
  /** 1-based line of the template; undefined where none is to blame. */
  readonly line: number | undefined;
  /** The name in Jinja or Python, with CHAT_TEMPLATE_UNSUPPORTED. */
  readonly feature: string | undefined;

  constructor(
    code: ChatTemplateErrorCode,
    reason: string,
    { line, feature, cause }: ChatTemplateErrorFields = {},
  ) {
    const where = line === undefined ? "chat template" : `chat template, line ${line}`;
    super(`${where}: ${reason}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.reason = reason;
    this.line = line;
    this.feature = feature;
  }
}

/** Throws what Python would throw here. */
export function fail(reason: string): never {
  throw new ChatTemplateError("CHAT_TEMPLATE_FAILED", reason);
}

/** Throws for what Python can and this cannot. */
export function unsupported(feature: string): never {
  throw new ChatTemplateError("CHAT_TEMPLATE_UNSUPPORTED", `${feature} is not supported`, {
    feature,
  });
}

export function syntaxError(reason: string, line: number): never {
  throw new ChatTemplateError("CHAT_TEMPLATE_SYNTAX", reason, { line });
}
