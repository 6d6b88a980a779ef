/**
 * Runs before everything in processes that Python starts (`--import`), and in their threads. A
 * module of the user's stands anywhere, with no node_modules above it, and may import `rayling`
 * and `@rayling/...`: it gets those that run here. Another copy in node_modules would not share
 * their state.
 */

import { registerHooks } from "node:module";

const ownPackages = /^(?:rayling|@rayling\/[^/]+)(?:\/|$)/;

registerHooks({
  resolve(specifier, context, next) {
    if (!ownPackages.test(specifier)) return next(specifier, context);
    return next(specifier, { ...context, parentURL: import.meta.url });
  },
});
