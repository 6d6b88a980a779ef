/** Paths as people read them. */
import { relative } from "node:path";

/** Returns the path from the current folder where that is shorter; of a URL nothing changes. */
export function shortPath(path: string): string {
  const own = relative(process.cwd(), path);
  return path.includes("://") || own === "" || own.length >= path.length ? path : own;
}
