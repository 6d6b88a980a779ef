/** The places of a code cache on the disk. */
import { join } from "node:path";

/** Marks of processes: that they use a package, or that they remove it. */
export type MarkKind = "uses" | "evicting";

export class CacheFolders {
  readonly base: string;

  constructor(base: string) {
    this.base = base;
  }

  /** The folder of that kind. */
  folder(kind: MarkKind | "packages" | "incoming"): string {
    return join(this.base, kind);
  }

  /** The folder of a package. */
  place(id: string): string {
    return join(this.base, "packages", id);
  }

  /** The folder of a package's files. */
  files(id: string): string {
    return join(this.place(id), "files");
  }

  /** The list of a package's files. */
  list(id: string): string {
    return join(this.place(id), "manifest.json");
  }

  /** The file that holds the bytes of a package's files. */
  size(id: string): string {
    return join(this.place(id), "bytes");
  }

  /** Everything that a package must have. */
  parts(id: string): readonly string[] {
    return [this.list(id), this.size(id), this.files(id)];
  }
}

/** Returns enough of an id for people. */
export function shortCode(id: string): string {
  return id.slice(0, 12);
}
