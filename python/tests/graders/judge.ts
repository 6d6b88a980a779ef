/** Asks a judge for each sample. */

import type { ScoreInput } from "@rayling/reward-manager-registry";

export async function computeScore({ solutionStr, url, signal }: ScoreInput) {
  const body = JSON.stringify({ solution: solutionStr });
  const response = await fetch(String(url), { method: "POST", body, signal: signal ?? null });
  const { score } = (await response.json()) as { readonly score: number };
  return { score, pid: process.pid };
}
