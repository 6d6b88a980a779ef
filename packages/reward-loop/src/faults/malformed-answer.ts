/**
 * Finds whether an error is about an endpoint's malformed JSON, where clients throw a plain
 * SyntaxError: `response.json()` of fetch, and SDKs that call JSON.parse themselves (openai). A
 * SyntaxError of the user's own JSON.parse, say of a judge's text, is the user's: the caller of
 * JSON.parse tells them apart.
 *
 * The stack decides: Node's own code of fetch, or a package (a file under node_modules) that
 * continues after an await, with no user code in between. A package that user code calls in the
 * same turn is a parser that the user chose for a text. Where the user's module is bundled with its
 * packages in one file, or has no stack, the error stays the user's.
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
  // Frames below the first await belong to callers that waited.
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
