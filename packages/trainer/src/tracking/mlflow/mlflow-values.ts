/** Metrics and settings as MLflow takes them: its names, its limits, verl's spelling of both. */

import { isList, isRecord } from "@rayling/reward-manager-registry/values";
import type { StepMetrics, TrackingConfig } from "../tracking-logger.ts";

/** One value of a metric, or a parameter, in a request. */
export interface KeyValue {
  readonly key: string;
  readonly value: number | string;
}

/** MLflow's limit of a parameter's value, in characters. */
const maxValueLength = 6000;
/** MLflow's limit of a key, in characters. */
const maxKeyLength = 250;

/**
 * Spells as verl does: "@" is "_at_", several slashes are one, other characters that MLflow refuses
 * are "_".
 */
export function mlflowKey(name: string): string {
  return name
    .replaceAll("@", "_at_")
    .replaceAll(/\/+/g, "/")
    .replaceAll(/[^/\w.\- :]/g, "_")
    .slice(0, maxKeyLength);
}

/** Numbers that JSON lacks are MLflow's texts: NaN, Infinity. */
export function mlflowMetrics(metrics: StepMetrics, step: number, timestamp: number): KeyValue[] {
  return Object.entries(metrics).map(([name, value]) => ({
    key: mlflowKey(name),
    value: Number.isFinite(value) ? value : String(value),
    timestamp,
    step,
  }));
}

/**
 * The settings as verl logs them: keys joined by "/", a list as its length (`list_len`) and items,
 * values as Python writes them.
 */
export function mlflowParams(config: TrackingConfig): KeyValue[] {
  return Object.entries(config).flatMap(([name, value]) => paramsAt(name, value));
}

function paramsAt(path: string, value: unknown): KeyValue[] {
  if (isList(value)) {
    const items = value.flatMap((one, index) => paramsAt(`${path}/${index}`, one));
    return [{ key: mlflowKey(`${path}/list_len`), value: String(value.length) }, ...items];
  }
  if (isRecord(value) && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([name, one]) => paramsAt(`${path}/${name}`, one));
  }
  return [{ key: mlflowKey(path), value: pythonText(value).slice(0, maxValueLength) }];
}

function pythonText(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? value : JSON.stringify(value);
}
