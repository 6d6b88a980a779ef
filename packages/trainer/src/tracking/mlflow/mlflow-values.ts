/** Metrics and settings as MLflow takes them: its limits, verl's spelling of values. */

import { isList, isRecord } from "@rayling/reward-manager-registry/values";
import type { StepMetrics, TrackingConfig } from "../tracking-logger.ts";
import type { MlflowKeys } from "./mlflow-keys.ts";

/** One value of a metric, or a parameter, in a request. */
export interface KeyValue {
  /** The server's name for it (MlflowKeys). */
  readonly key: string;
  /** The name here. */
  readonly name: string;
  readonly value: number | string;
}

/** MLflow's limit of a parameter's value, in characters. */
const maxValueLength = 6000;
/** Numbers that JSON lacks are MLflow's texts: NaN, Infinity. */
export function mlflowMetrics(metrics: StepMetrics, keys: MlflowKeys): KeyValue[] {
  return Object.entries(metrics).map(([name, value]) => ({
    key: keys.of(name),
    name,
    value: Number.isFinite(value) ? value : String(value),
  }));
}

/**
 * The settings as verl logs them: keys joined by "/", a list as its length (`list_len`) and items,
 * values as Python writes them.
 */
export function mlflowParams(config: TrackingConfig, keys: MlflowKeys): KeyValue[] {
  return Object.entries(config).flatMap(([name, value]) => paramsAt([name], value, keys));
}

function paramsAt(path: readonly string[], value: unknown, keys: MlflowKeys): KeyValue[] {
  if (isList(value)) {
    const items = value.flatMap((one, index) => paramsAt([...path, String(index)], one, keys));
    return [paramOf([...path, "list_len"], String(value.length), keys), ...items];
  }
  if (isRecord(value) && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([name, one]) => paramsAt([...path, name], one, keys));
  }
  return [paramOf(path, pythonText(value).slice(0, maxValueLength), keys)];
}

/** "a/b" and the "b" of an "a" have one name, and are two parameters. */
function paramOf(path: readonly string[], value: string, keys: MlflowKeys): KeyValue {
  const name = path.join("/");
  return { key: keys.of(name, JSON.stringify(path)), name, value: value.toWellFormed() };
}

function pythonText(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "string" ? value : JSON.stringify(value);
}
