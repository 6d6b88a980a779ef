/**
 * The host of a thread: its channels are the ports of its settings.
 *
 * Owner, with runtime/launch/launch-thread.ts, of worker_threads' Worker side.
 */
import { parentPort, workerData } from "node:worker_threads";
import { expose, wrap } from "comlink";
import { Budget } from "../store/memory-budget.ts";
import { portEndpoint, threadChannel } from "../transport/thread.ts";
import type { LauncherControl, ThreadSettings } from "./host-control.ts";
import { startHost } from "./host-runtime.ts";
import { type OutputMessage, redirectOutput } from "./output.ts";

export function startThread(): void {
  const settings = workerData as ThreadSettings;
  const { logToDriver } = settings.inside;
  if (logToDriver !== "raw") {
    redirectOutput((...output) => {
      const message: OutputMessage = ["output", ...output];
      if (logToDriver) parentPort?.postMessage(message);
    });
  }
  const driver = wrap<LauncherControl>(portEndpoint(settings.directory));
  const control = startHost({
    keepsResults: false,
    identity: settings,
    driver,
    data: (explain) => threadChannel(settings.data, explain),
    objectStore: {
      budget: new Budget(settings.objectStore.budget),
      spillDirectory: settings.objectStore.spillDirectory,
      isDevelopment: settings.objectStore.isDevelopment,
    },
  });
  expose(control, portEndpoint(settings.control));
  void driver.ready();
  // The control port keeps the thread alive; nothing else has to.
  parentPort?.unref();
}
