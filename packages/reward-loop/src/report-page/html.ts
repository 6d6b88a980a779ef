/**
 * A self-contained page: no script, no request, its own styles, light or dark by the reader's
 * preference. Content is HTML; foreign text goes through `escaped` first. Its content security
 * policy allows only its own style sheet, so that injected markup has no effect.
 */

import { createHash } from "node:crypto";

export interface HtmlPage {
  readonly title: string;
  /** The text below the title. */
  readonly subtitle: string;
  readonly sections: readonly string[];
}

/**
 * Series have the classes c0 to c7 (`colourCount`), in colours that colour-blind readers can tell
 * apart (Okabe and Ito).
 */
const light = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#8a6d00",
  "#3b8fc4",
  "#7a4fbf",
  "#5f6b7a",
];
const dark = [
  "#56b4e9",
  "#ff8c42",
  "#2fd0a0",
  "#f0a3cf",
  "#f0e442",
  "#9ad1f2",
  "#b596f5",
  "#a3b0c2",
];

export const colourCount: number = light.length;

const colours = (of: readonly string[]): string =>
  of.map((colour, index) => `--c${index}: ${colour};`).join(" ");

const style = `
:root { color-scheme: light dark; --back: #ffffff; --text: #1f2937; --dim: #5b6472; --line: #d5d9e0; ${colours(light)} }
@media (prefers-color-scheme: dark) { :root { --back: #14171c; --text: #e5e7eb; --dim: #9aa4b2; --line: #343a44; ${colours(dark)} } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em; background: var(--back); color: var(--text); }
h1 { margin-bottom: 0; } h2 { margin: 1.8em 0 0.4em; font-size: 1.2em; } p { margin: 0.3em 0; color: var(--dim); }
table { border-collapse: collapse; } th, td { text-align: left; padding: 2px 16px 2px 0; vertical-align: top; } th { font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1em 1.5em; }
figure { margin: 0; } figcaption { font-weight: 600; } figcaption span { font-weight: 400; font-size: 13px; margin-left: 0.8em; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 11px; fill: var(--dim); }
.grid { stroke: var(--line); stroke-width: 1; } .curve { stroke-width: 1.8; } circle.point { stroke: none; fill-opacity: 0; } circle.point:hover, circle.few { fill-opacity: 1; }
${light.map((_, index) => `.c${index} { stroke: var(--c${index}); fill: var(--c${index}); color: var(--c${index}); }`).join(" ")}
polyline.curve { fill: none; }
`;

/**
 * No scripts, no requests, no forms; styles by their hash (CSP Level 3), so that `style` attributes
 * do nothing either. A server sends it as a header, too.
 */
export const pagePolicy: string = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

export function htmlPage({ title, subtitle, sections }: HtmlPage): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${pagePolicy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title>
<style>${style}</style>
<h1>${escaped(title)}</h1>
<p>${escaped(subtitle)}</p>
${sections.join("\n")}
</html>
`;
}

/** Returns "" without content. */
export function section(title: string, content: string): string {
  return content === "" ? "" : `<h2>${escaped(title)}</h2>\n${content}`;
}

/** Names and values, as text. */
export function figuresTable(figures: readonly (readonly [string, string])[]): string {
  const rows = figures.map(
    ([name, value]) => `<tr><th>${escaped(name)}</th><td>${escaped(value)}</td></tr>`,
  );
  return `<table>${rows.join("\n")}</table>`;
}

/** Cells are text. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[], tag: "th" | "td"): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join("")}</tr>`;
  return `<table>${row(heads, "th")}${rows.map((cells) => row(cells, "td")).join("\n")}</table>`;
}

/** Names and messages are others'. */
export function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
