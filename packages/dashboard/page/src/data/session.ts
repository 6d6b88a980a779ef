/** The views of a session, as the server gives them. */

export type { NodeStatus } from "@rayling/core/dashboard";
export type { ActorAnswer } from "../../../src/views/actor-view.ts";
export type { LogTail } from "../../../src/views/log-lines.ts";
export type { Overview } from "../../../src/views/overview.ts";
export type { Row as PlainRow, RowsAnswer } from "../../../src/views/rows.ts";
