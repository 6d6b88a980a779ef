/**
 * Numbers as people read them, and quantiles.
 */

export function grouped(value: number, digits = 0): string {
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** Formats a measured time: 1.5 ms, 320 ms, 12.34 s, 3m 20s, 2h 05m. */
export function duration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${ms.toFixed(0)} ms`;
  return ms < 60_000 ? `${grouped(ms / 1000, 2)} s` : span(ms);
}

/** Formats a waiting time in coarse units: 4 s, 3m 20s, 2h 05m. */
export function span(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${twoDigits(seconds % 60)}s`;
  return `${grouped(Math.floor(minutes / 60))}h ${twoDigits(minutes % 60)}m`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

/** Formats bytes in powers of 1,000, as for disks and networks. */
export function bytes(value: number): string {
  const power = value < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));
  const unit = ["B", "kB", "MB", "GB", "TB"][power] ?? "";
  return `${grouped(value / 1000 ** power, power === 0 ? 0 : 1)} ${unit}`;
}

export function mean(values: readonly number[]): number | undefined {
  return values.length === 0
    ? undefined
    : values.reduce((sum, one) => sum + one, 0) / values.length;
}

/**
 * Returns the nearest rank: the smallest value that at least this share of the values does not
 * exceed.
 */
export function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
