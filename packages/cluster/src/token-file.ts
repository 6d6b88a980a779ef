/**
 * The token of a machine's agent: made at its first start, in a file that only its user can read.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { link, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { inHome, newToken, RayError } from "@rayling/core/cluster";

/** A token file that cannot be used. Code "TOKEN_FILE". */
export class TokenFileError extends RayError {
  /** The path of the token file. */
  readonly path: string;
  constructor(path: string, message: string, cause?: unknown) {
    super("TOKEN_FILE", `token file ${path} ${message}`, { cause });
    this.path = path;
  }
}

/**
 * Returns the path of the token file if none is given: `~/.rayling/token`.
 *
 * @throws RaySystemError for a user without a home folder
 */
export function defaultTokenFile(): string {
  return inHome("the token file", ".rayling", "token");
}

/**
 * Returns the token in the file, or writes a new one if there is none. Rejects with TokenFileError.
 */
export async function readToken(path: string = defaultTokenFile()): Promise<string> {
  // An existing file may lie in a folder that is not writable.
  if (existsSync(path)) return readKeptToken(path);
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const token = newToken();
    const draft = `${path}.${randomUUID()}`;
    try {
      await writeFile(draft, `${token}\n`, { flag: "wx", mode: 0o600 });
      // If two agents start at once, one makes the whole file, and the other reads it.
      await link(draft, path);
    } finally {
      await rm(draft, { force: true });
    }
    return token;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
      throw new TokenFileError(path, `cannot be made: ${(error as Error).message}`, error);
    }
  }
  return readKeptToken(path);
}

/** Returns the token of an agent that was started before. Rejects with TokenFileError. */
async function readKeptToken(path: string = defaultTokenFile()): Promise<string> {
  let token: string;
  let mode: number;
  try {
    ({ mode } = await stat(path));
    token = (await readFile(path, "utf8")).trim();
  } catch (error) {
    throw new TokenFileError(path, `cannot be read: ${(error as Error).message}`, error);
  }
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    throw new TokenFileError(path, `can be read by others: chmod 600 ${path}`);
  }
  if (token.length < 32) {
    throw new TokenFileError(
      path,
      "holds no token of at least 32 characters: remove it, and the next start makes one",
    );
  }
  return token;
}
