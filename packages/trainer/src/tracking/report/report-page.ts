/**
 * The page of runs as one file: script, style sheet and data are in it, and nothing is fetched. Its
 * content security policy allows its own script and style sheet only, so that markup that came in
 * has no effect.
 */

import { createHash } from "node:crypto";
import { escaped } from "@rayling/reward-loop/page";
import type { PageParts } from "./page-parts.ts";
import type { RunAbout, ShownRun } from "./shown-run.ts";
import type { StepPhases } from "./step-phases.ts";

/** A run with all that its page shows. */
export interface SavedRun extends Pick<ShownRun, "name" | "lastStep" | "curves" | "validations"> {
  readonly about: RunAbout;
  /** Phases of its steps, rising. */
  readonly steps: readonly StepPhases[];
}

/** The data of a page that is a file. */
export interface ReportData {
  readonly title: string;
  readonly runs: readonly SavedRun[];
}

export function reportPage(data: ReportData, parts: PageParts): string {
  const script = parts["page.js"].replaceAll("</script", String.raw`<\/script`);
  const style = parts["page.css"];
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(data.title)}</title>
<style>${style}</style>
</head>
<body>
<noscript>This page needs JavaScript. All of it is in this file.</noscript>
<script type="application/json" id="report">${inScript(JSON.stringify(data))}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** JSON has "<" within strings only. */
function inScript(json: string): string {
  return json.replaceAll("<", String.raw`\u003c`);
}
