/**
 * Measures one row in a process of its own, whose environment is what is looked at, and prints its
 * rate.
 *
 *     node bench/ray/one-row.ts ROW PLAN
 */
import * as ray from "@rayling/core";
import type { RatePlan } from "../measure/rates.ts";
import { measureRow } from "../ray-rows.ts";
import { rayRows, rowResources } from "./rows.ts";

const [, , name, plan = ""] = process.argv;
const row = rayRows.find((one) => one.name === name);
if (row === undefined) throw new TypeError(`no row is called ${name}`);
await ray.init({ resources: rowResources });
console.log(JSON.stringify(await measureRow(row, JSON.parse(plan) as RatePlan)));
await ray.shutdown();
