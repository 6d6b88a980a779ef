/** Returns why a bundle that contains this package cannot start workers, and what to do. */
export function insideBundle(bundle: string): string {
  return `rayling is inside ${bundle}, where its workers cannot start. Leave it out, and install it where the bundle runs: ${settings}`;
}

const settings: string = [
  'esbuild: external: ["rayling", "@rayling/*"]',
  'vite: ssr: { external: ["rayling", "@rayling/core"] }',
  "rolldown and rollup: external: [/^@?rayling/]",
  'webpack: externals: [/^@?rayling/], with externalsType: "commonjs" where it makes no module',
].join("; ");
