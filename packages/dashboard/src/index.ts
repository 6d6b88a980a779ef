/**
 * Public names of @rayling/dashboard: the live page of a session, and the page of reward logs.
 */
export { serveRewardLogs, serveSession } from "./server/dashboard-server.ts";
