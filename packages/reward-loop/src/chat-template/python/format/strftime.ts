/** `strftime` of a local time in the locale C, as transformers' strftime_now has it on Linux. */

import { unsupported } from "../../error.ts";

const DAY_MS = 86_400_000;
const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months =
  "January February March April May June July August September October November December".split(
    " ",
  );

/** A number with its width, and what fills it. */
type Part = string | readonly [number, number, string?];

export function strftime(time: Date, format: string): string {
  return format.replace(/%([-_0^#]?)([\s\S]|$)/g, (whole, flag: string, directive: string) => {
    const composed = compositions[directive];
    if (composed !== undefined) return cased(strftime(time, composed), flag);
    const part = partOf(time, directive);
    if (part === undefined) return unsupported(`${whole} in strftime_now`);
    if (typeof part === "string") return cased(part, flag);
    const [value, width, fill = "0"] = part;
    if (flag === "-") return String(value);
    const filling = flag === "_" ? " " : flag === "0" ? "0" : fill;
    return String(value).padStart(width, filling);
  });
}

function cased(text: string, flag: string): string {
  if (flag === "^") return text.toUpperCase();
  return flag === "#" ? unsupported("%# in strftime_now") : text;
}

const compositions: Readonly<Record<string, string>> = {
  D: "%m/%d/%y",
  x: "%m/%d/%y",
  F: "%Y-%m-%d",
  T: "%H:%M:%S",
  X: "%H:%M:%S",
  R: "%H:%M",
  r: "%I:%M:%S %p",
  c: "%a %b %e %H:%M:%S %Y",
};

function partOf(time: Date, directive: string): Part | undefined {
  const [year, month, day] = [time.getFullYear(), time.getMonth(), time.getDate()];
  const [hour, weekday] = [time.getHours(), time.getDay()];
  const yearDay = Math.round((Date.UTC(year, month, day) - Date.UTC(year, 0, 1)) / DAY_MS);
  const parts: Readonly<Record<string, () => Part>> = {
    "%": () => "%",
    n: () => "\n",
    t: () => "\t",
    // Python's now() knows no zone.
    z: () => "",
    Z: () => "",
    a: () => days[weekday]!.slice(0, 3),
    A: () => days[weekday]!,
    b: () => months[month]!.slice(0, 3),
    h: () => months[month]!.slice(0, 3),
    B: () => months[month]!,
    p: () => (hour < 12 ? "AM" : "PM"),
    P: () => (hour < 12 ? "am" : "pm"),
    Y: () => [year, 1],
    C: () => [Math.floor(year / 100), 2],
    y: () => [year % 100, 2],
    m: () => [month + 1, 2],
    d: () => [day, 2],
    e: () => [day, 2, " "],
    H: () => [hour, 2],
    k: () => [hour, 2, " "],
    I: () => [hour % 12 || 12, 2],
    l: () => [hour % 12 || 12, 2, " "],
    M: () => [time.getMinutes(), 2],
    S: () => [time.getSeconds(), 2],
    f: () => String(time.getMilliseconds() * 1000).padStart(6, "0"),
    j: () => [yearDay + 1, 3],
    u: () => [weekday || 7, 1],
    w: () => [weekday, 1],
    U: () => [Math.floor((yearDay + 7 - weekday) / 7), 2],
    W: () => [Math.floor((yearDay + 7 - ((weekday + 6) % 7)) / 7), 2],
    G: () => [isoWeek(year, month, day)[0], 1],
    V: () => [isoWeek(year, month, day)[1], 2],
  };
  return parts[directive]?.();
}

/** The year and number of the week that this day's Thursday is in. */
function isoWeek(year: number, month: number, day: number): readonly [number, number] {
  const date = Date.UTC(year, month, day);
  const weekday = (new Date(date).getUTCDay() + 6) % 7;
  const thursday = date + (3 - weekday) * DAY_MS;
  const isoYear = new Date(thursday).getUTCFullYear();
  return [isoYear, 1 + Math.floor((thursday - Date.UTC(isoYear, 0, 1)) / (7 * DAY_MS))];
}
