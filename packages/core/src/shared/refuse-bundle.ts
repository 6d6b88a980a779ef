/** Who uses this package out of a bundle that holds it hears how to leave it out, before a worker fails to start. */
import { RaySystemError } from "./errors.ts";
import { bundledInto } from "./own-files.ts";

let isWhole = false;

/** @throws RaySystemError where a bundler has put this package into another file */
export function refuseBundle(): void {
  if (isWhole) return;
  const bundle = bundledInto();
  if (bundle !== undefined) {
    throw new RaySystemError(
      `rayling is inside ${bundle}, where its workers cannot start. Leave it out, and install it where the bundle runs: ${settings}`,
    );
  }
  isWhole = true;
}

const settings: string = [
  'esbuild: external: ["rayling", "@rayling/*"]',
  'vite: ssr: { external: ["rayling", "@rayling/core"] }',
  "rolldown and rollup: external: [/^@?rayling/]",
  "webpack: externals: [/^@?rayling/]",
].join("; ");
