/** Thrown values, as Python shows them and builds exceptions of them. */
import { inspect } from "node:util";
import { isSource, ownFile } from "../../own-files.ts";

export interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** Such as `ENOENT`. */
  readonly code: string | null;
  readonly cause: Thrown | null;
}

/** Frames of this package say nothing about the code that threw. */
const ownFolder = ownFile(isSource ? "src/" : "dist/").href;

/** Causes of causes beyond this many are left out. */
const deepest = 8;

/** Never throws, whatever was thrown: a getter of the user's, or a Proxy, may. */
export function describeThrown(error: unknown): Thrown {
  try {
    return described(error, 0);
  } catch (problem) {
    const reason = problem instanceof Error ? problem.message : "it cannot be read";
    const message = `what was thrown cannot be described: ${reason}`;
    return { name: "Error", message, stack: "", code: null, cause: null };
  }
}

function described(error: unknown, depth: number): Thrown {
  if (!(error instanceof Error)) {
    const message = `${typeof error === "string" ? error : inspect(error)} was thrown`;
    return { name: "Error", message, stack: "", code: null, cause: null };
  }
  const code = "code" in error && typeof error.code === "string" ? error.code : null;
  const stack = typeof error.stack === "string" ? error.stack : "";
  const hasCause = error.cause !== undefined && depth < deepest;
  return {
    name: error.name,
    message: error.message,
    stack: withoutOwnFrames(stack),
    code,
    cause: hasCause ? described(error.cause, depth + 1) : null,
  };
}

function withoutOwnFrames(stack: string): string {
  return stack
    .split("\n")
    .filter((line) => !line.includes(ownFolder))
    .join("\n");
}
