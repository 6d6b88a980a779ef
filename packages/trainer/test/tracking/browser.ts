/** A real browser without a window: RAYLING_CHROMIUM, or the system's chromium. Undefined where there is none. */

import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";
import { onTestFinished } from "vitest";

export const chromiumPath: string | undefined = [
  process.env["RAYLING_CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/google-chrome",
].find((path) => path !== undefined && existsSync(path));

export async function openBrowser(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: chromiumPath as string,
    // Of Chromium's sandbox root has none; the page is our own.
    args: ["--no-sandbox"],
  });
  onTestFinished(() => browser.close());
  return browser;
}
