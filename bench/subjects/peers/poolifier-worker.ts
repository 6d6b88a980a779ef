/** The other end of poolifier.ts. */
import { ThreadWorker } from "poolifier";
import type { Addends } from "../subject.ts";

export default new ThreadWorker<Addends, number>((addends) =>
  addends === undefined ? Number.NaN : addends.a + addends.b,
);
