/**
 * A chat template as transformers renders it: jinja2 in its sandbox, with trim_blocks,
 * lstrip_blocks, loop controls, `generation`, and Python's own values and texts.
 *
 * The text equals transformers' or rendering fails: an unsupported feature is refused by its name
 * (CHAT_TEMPLATE_UNSUPPORTED). `test/chat-template/` has jinja2's own answers. Left out: templates
 * that load others, automatic HTML escaping, and functions of Python that no chat template calls.
 */

import { globalsOf } from "./render/globals.ts";
import { parseTemplate } from "./parse/parser.ts";
import { render } from "./render/render.ts";
import { Scope } from "./render/scope.ts";
import type { Statement } from "./parse/syntax.ts";
import { valueOf } from "./python/from-javascript.ts";

export interface RenderOptions {
  /** The local time of `strftime_now`; default the machine's. */
  readonly now?: () => Date;
}

export class ChatTemplate {
  readonly #body: readonly Statement[];

  /** Throws ChatTemplateError: CHAT_TEMPLATE_SYNTAX, CHAT_TEMPLATE_UNSUPPORTED. */
  constructor(text: string) {
    this.#body = parseTemplate(text);
  }

  /**
   * `values` are plain data: a whole number is an int, what is no JSON (an image) can be asked
   * for and no more; what is undefined is not there.
   *
   * Throws ChatTemplateError: CHAT_TEMPLATE_REFUSED, CHAT_TEMPLATE_FAILED,
   * CHAT_TEMPLATE_UNSUPPORTED.
   */
  render(
    values: Readonly<Record<string, unknown>>,
    { now = () => new Date() }: RenderOptions = {},
  ): string {
    const globals = new Scope();
    for (const [name, value] of globalsOf(now)) globals.set(name, value);
    for (const [name, value] of Object.entries(values)) {
      if (value !== undefined) globals.set(name, valueOf(value, name));
    }
    return render(this.#body, new Scope(globals));
  }
}
