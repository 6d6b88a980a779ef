/** Entry point of a host thread. */
import { startThread } from "./thread-host.ts";

startThread();
