/**
 * Makes foreign text safe for terminals: this file alone knows what a terminal obeys.
 *
 * A name, a message or a log line may come from a model, a peer or a data set. In a terminal it
 * could move the cursor over other text, set the title, write to the clipboard, or reorder letters
 * so that a text reads differently. Such characters are removed or shown as U+FFFD: control
 * characters of C0 and C1 (except tab and line feed), the escape sequences that they begin,
 * bidirectional controls, and Unicode's line and paragraph separators. Values stay unchanged: only
 * text that is written to a terminal passes through here.
 */

/* eslint-disable no-control-regex -- control characters are what is looked for */

/**
 * C0 except tab and line feed, DEL and C1; marks, embeddings, overrides and isolates of directions;
 * separators of lines and paragraphs.
 */
const obeyed = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The obeyed characters and the ends of lines. */
const obeyedInLine = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The obeyed characters that JSON.stringify does not escape. */
const obeyedInJson = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Escape sequences (ECMA-48, 5.4 and 5.6): control strings, CSI, and others. Node's
 * stripVTControlCharacters knows no control strings with spaces, and only CSI of C1. No part of a
 * sequence can begin another one, so the match takes linear time.
 */
const sequences =
  /(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\0-\x1f\x7f-\x9f]*(?:\x07|\x1b\\|\x9c)|(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1b[\x20-\x2f]*[\x30-\x7e]/g;

/** Select graphic rendition: colours and weights. */
const colour = /^\x1b\[[\d;:]*m$/;

const plainColours = "\u001b[0m";
const shownAs = "\uFFFD";

/**
 * Returns a text as one line, with obeyed characters as U+FFFD: for names, errors and cells of
 * tables.
 */
export function terminalLine(text: string): string {
  const lines = text.split("\n");
  const last = lines.length - 1;
  const parts = lines.map((line, index) => {
    const begun = index === 0 ? line : line.trimStart();
    return index === last ? begun : begun.trimEnd();
  });
  const line = parts
    .filter((part, index) => part !== "" || index === 0 || index === last)
    .join(" ");
  return line.replaceAll("\t", " ").replaceAll(obeyedInLine, shownAs);
}

/**
 * Returns a text in lines, without escape sequences, and with other obeyed characters as U+FFFD:
 * for logs and reports.
 *
 * @param colours whether colours stay; they end with the line
 */
export function terminalText(
  text: string,
  { colours = false }: { readonly colours?: boolean } = {},
): string {
  if (text.search(obeyed) < 0) return text;
  if (!colours) return withoutControls(text.replaceAll(sequences, ""));
  return text
    .split("\n")
    .map((line) => {
      let hasColour = false;
      const parts: string[] = [];
      let from = 0;
      for (const { 0: sequence, index } of line.matchAll(sequences)) {
        const isColour = colour.test(sequence);
        hasColour ||= isColour;
        parts.push(withoutControls(line.slice(from, index)), isColour ? sequence : "");
        from = index + sequence.length;
      }
      parts.push(withoutControls(line.slice(from)));
      const shown = parts.join("");
      return hasColour && !shown.endsWith(plainColours) ? shown + plainColours : shown;
    })
    .join("\n");
}

/** Windows ends lines with a carriage return, and a progress bar restarts its line with one. */
function withoutControls(text: string): string {
  const withoutReturns = text.replaceAll(/\r+/g, (returns, at: number) => {
    const next = text[at + returns.length];
    return next === undefined || next === "\n" ? "" : " ";
  });
  return withoutReturns.replaceAll(obeyed, shownAs);
}

/** Returns JSON of an equal value that contains nothing that a terminal obeys. */
export function terminalJson(json: string): string {
  return json.replaceAll(obeyedInJson, escaped);
}

/** Escapes a character for a double-quoted string of JSON or YAML. */
export function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Whether a text contains something that a terminal obeys; line ends and tabs do not count. */
export function hasObeyed(text: string): boolean {
  return text.search(obeyed) >= 0;
}

/** Whether a stream shows foreign colours: it is a terminal, or the environment forces colours. */
export function takesColours(stream: { readonly isTTY?: boolean }): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: refused } = process.env;
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  return stream.isTTY === true && (refused === undefined || refused === "");
}
