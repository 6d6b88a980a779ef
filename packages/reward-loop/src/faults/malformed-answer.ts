/**
 * Whether an error is about an endpoint's answer that is no JSON, where clients say so by a plain SyntaxError: `response.json()` of fetch, and SDKs that call JSON.parse themselves (openai).
 * The same error of the user's own JSON.parse, of a judge's text say, is theirs: it is told apart by who called JSON.parse.
 *
 * By the stack: Node's own code of fetch, or a package (a file under node_modules) that goes on after an await, with none of the user's code in between: what the user's code calls and waits for in the same
 * turn is a parser that they chose for a text that they have. Where the user's module is bundled with its packages in one file, or has no stack, it stays the user's.
 */

/** @param within an error and all that is within it (withinError) */
export function isMalformedAnswer(within: readonly object[]): boolean {
  return within.some((error) => error instanceof Error && isOfClient(error));
}

function isOfClient(error: Error): boolean {
  const stack = stackOf(error);
  if (stack === undefined) return false;
  const frames = stack.split("\n").filter((line) => line.startsWith("    at "));
  const [parse = "", ...callers] = frames;
  if (!parse.startsWith("    at JSON.parse (")) return false;
  // What was awaited is below.
  const inTurn = callers.filter((line) => !line.startsWith("    at async "));
  const [caller = ""] = inTurn;
  if (fetchesBody.test(caller)) return true;
  return (
    ofPackage.test(caller) && inTurn.every((line) => ofPackage.test(line) || ofNode.test(line))
  );
}

/** undici as Node brings it. */
const fetchesBody = /\(?node:internal\/deps\/undici\//;
const ofNode = /[ (]node:|\(<anonymous>\)$/;
const ofPackage = /[\\/]node_modules[\\/]/;

/** Getters of the user's may throw. */
function stackOf(error: Error): string | undefined {
  try {
    const { stack } = error;
    return error instanceof SyntaxError && typeof stack === "string" ? stack : undefined;
  } catch {
    return undefined;
  }
}
