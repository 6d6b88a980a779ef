/** How runtimes name classes and functions of the driver's code to each other. */

/**
 * How a worker finds a class or function: a module to import, and a `remote()` call or an export in
 * it.
 */
export type RemoteKey = { readonly name: string } & (RemotePlace | ExportName);

export interface RemotePlace {
  readonly moduleUrl: string;
  /**
   * The place of the call, and its callers outwards to the module (host/code/remote-call-place.ts).
   */
  readonly site: string;
  /** Hashes of the files of `site`, in its order. */
  readonly files: string;
  /** Which of those that were made there. */
  readonly index: number;
  /** How many were made there. */
  readonly count: number;
}

export interface ExportName {
  readonly moduleUrl: string;
  readonly exportName: string;
}
