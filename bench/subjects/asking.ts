/** A score function that asks a judge over HTTP, and the same question by fetch alone. */
import { chatComplete } from "@rayling/reward-loop/client";
import type { ScoreInput } from "@rayling/reward-manager-registry";

export async function asked({ solutionStr, judgeUrl, signal }: ScoreInput): Promise<number> {
  const baseUrl = String(judgeUrl);
  const { text } = await chatComplete({
    baseUrl,
    model: "m",
    messages: about(solutionStr),
    signal,
  });
  return scoreIn(text);
}

/** As one would write it by hand. */
export async function askedByFetch(baseUrl: string, solution: string): Promise<number> {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: about(solution) }),
  });
  const { choices } = (await response.json()) as {
    choices: readonly { readonly message: { readonly content: string } }[];
  };
  return scoreIn(choices[0]?.message.content ?? "");
}

function about(solution: string): { role: "user"; content: string }[] {
  return [
    { role: "user", content: `Judge this answer: ${solution}. ${"It is long. ".repeat(70)}` },
  ];
}

function scoreIn(text: string): number {
  return Number(/\d+/.exec(text)?.[0]) / 10;
}
