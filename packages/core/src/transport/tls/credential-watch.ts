/**
 * Looks for new certificates at intervals, and renews the credentials of this process, which may
 * run for longer than a certificate is valid.
 *
 * Files are replaced one after the other, so they are read only when they are unchanged between two
 * looks. An unusable file is reported once, and the previous credentials stay. A certificate that
 * is about to expire is reported once, too.
 */
import { X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import {
  type CredentialPaths,
  expiriesOf,
  type Expiry,
  type FoundCredentials,
  readCredentials,
} from "./credential-files.ts";
import { type Credentials, isSame, renew } from "./credentials.ts";
import { asError, codeOf } from "../../shared/errors/thrown.ts";
import { timers } from "../../shared/machine/timers.ts";

/** The pause between two looks, in ms. */
const pauseMs = 2000;

/** A certificate is reported this long before its expiry, in ms. */
const noticeMs = 7 * 86_400_000;

export interface WatchOptions {
  /** Takes a line for people. */
  readonly tell: (line: string) => void;
  /** Passes renewed credentials on to threads and processes that have copies. */
  readonly onRenewed: (credentials: Credentials) => void;
}

/** Watches the files. Does not keep the process alive. Returns a function that ends the watch. */
export function watchCredentials(found: FoundCredentials, options: WatchOptions): () => void {
  const watch = new CredentialWatch(found, options);
  return () => watch.close();
}

class CredentialWatch {
  readonly #paths: CredentialPaths;
  readonly #credentials: Credentials;
  readonly #options: WatchOptions;
  #expiries: readonly Expiry[];
  /**
   * Stamps of the files at the last look, and when they were read; the files may have changed since
   * they were found.
   */
  #seen: string | undefined;
  #read: string | undefined;
  readonly #reported: Set<string> = new Set();
  #timer: NodeJS.Timeout | undefined;
  #isOpen = true;

  constructor(found: FoundCredentials, options: WatchOptions) {
    this.#paths = found.paths;
    this.#credentials = found.credentials;
    this.#expiries = expiriesOf(found);
    this.#options = options;
    this.#tellAge();
    this.#lookLater();
  }

  close(): void {
    this.#isOpen = false;
    timers.clearTimeout(this.#timer);
  }

  #lookLater(): void {
    this.#timer = timers
      .setTimeout(() => {
        void this.#look().finally(() => {
          if (this.#isOpen) this.#lookLater();
        });
      }, pauseMs)
      .unref();
  }

  async #look(): Promise<void> {
    this.#tellAge();
    const stamp = await stampOf(this.#paths);
    const isQuiet = stamp === this.#seen;
    this.#seen = stamp;
    if (!this.#isOpen || !isQuiet || stamp === this.#read) return;
    let found: Credentials;
    try {
      found = readCredentials(this.#paths);
    } catch (error) {
      const { message } = asError(error);
      this.#tell(stamp, `${message}; the previous certificates stay in use until it is repaired`);
      return;
    }
    this.#read = stamp;
    if (isSame(found, this.#credentials)) return;
    renew(this.#credentials, found);
    this.#expiries = expiriesOf({ paths: this.#paths, credentials: found });
    const { validToDate } = new X509Certificate(found.cert);
    this.#options.tell(
      `${this.#paths.cert} and its key are in use from now on; it is valid until ${validToDate.toISOString()}`,
    );
    this.#options.onRenewed(found);
  }

  #tellAge(): void {
    const now = Date.now();
    for (const { path, end, fix } of this.#expiries) {
      const leftMs = end.getTime() - now;
      if (leftMs > noticeMs) continue;
      const line = `${path} ${leftMs > 0 ? "expires" : "expired"} on ${end.toISOString()}: ${fix}`;
      this.#tell(line, `${line}; the renewal needs no restart`);
    }
  }

  #tell(what: string, line: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.#options.tell(line);
  }
}

/**
 * Returns a stamp that changes whenever a file is replaced or written, or a link points elsewhere.
 */
async function stampOf({ ca, cert, key }: CredentialPaths): Promise<string> {
  const stamps = await Promise.all(
    [ca, cert, key].map(async (path) => {
      try {
        const { mtimeMs, ctimeMs, size, ino } = await stat(path);
        return [mtimeMs, ctimeMs, size, ino].join();
      } catch (error) {
        return codeOf(error);
      }
    }),
  );
  return stamps.join(" ");
}
