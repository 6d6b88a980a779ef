/**
 * One row group as a file of its own for the library. Where it has nested columns, the bytes of its
 * columns are read here, and headers of their pages are corrected (page-nulls.ts). Lengths change
 * by that, so that the columns get new places. Must not know how pages are decoded.
 */
import type { AsyncBuffer, ColumnMetaData, FileMetaData, SchemaTree } from "hyparquet";
import { ParquetError } from "../errors.ts";
import { reasonOf } from "../shared/file-problem.ts";
import type { ParquetFile } from "./file.ts";
import { withNullsCounted } from "./page-nulls.ts";
import { shown } from "./proto-key.ts";

/** The part of a file that the library reads: the footer knows no other row groups. */
export interface RowGroupSource {
  readonly file: AsyncBuffer;
  readonly metadata: FileMetaData;
}

/** A row group by its number, and the names of its columns to read; undefined: all. */
interface GroupColumns {
  readonly group: number;
  readonly columns: readonly string[] | undefined;
}

/** The library reads columns together that lie within 2 MiB: each one of these alone. */
const gap = 2 ** 22;

/** Rejects with ParquetError for a file or pages that cannot be read. */
export async function rowGroupSource(
  file: ParquetFile,
  { metadata, schema }: { readonly metadata: FileMetaData; readonly schema: SchemaTree },
  { group: index, columns }: GroupColumns,
): Promise<RowGroupSource> {
  const groups = metadata.row_groups.slice(index, index + 1);
  const asked = groups
    .flatMap((group) => group.columns)
    .map(({ meta_data: column }) => column)
    .filter((column) => column !== undefined)
    .filter(({ path_in_schema: [name = ""] }) => columns?.includes(name) ?? true);
  if (!asked.some(isNested))
    return { file: file.bytes, metadata: { ...metadata, row_groups: groups } };
  const pages = new Map<number, ArrayBuffer>();
  const moved = new Map<ColumnMetaData, ColumnMetaData>();
  const chunks = await Promise.all(asked.map((column) => pagesOf(file, column, schema)));
  let place = gap;
  for (const [at, column] of asked.entries()) {
    const chunk = chunks[at] ?? new ArrayBuffer();
    pages.set(place, chunk);
    moved.set(column, movedTo(place, column, chunk.byteLength));
    place += chunk.byteLength + gap;
  }
  const row_groups = groups.map((group) => ({
    ...group,
    columns: group.columns.map((chunk) => {
      const column = chunk.meta_data && moved.get(chunk.meta_data);
      return column === undefined ? chunk : { ...chunk, meta_data: column };
    }),
  }));
  return { file: inMemory(pages, place), metadata: { ...metadata, row_groups } };
}

/** Whether a column is a part of a list or struct: only there headers are wrong. */
function isNested({ path_in_schema: path }: ColumnMetaData): boolean {
  return path.length > 1;
}

async function pagesOf(
  { path, bytes }: ParquetFile,
  column: ColumnMetaData,
  schema: SchemaTree,
): Promise<ArrayBuffer> {
  const start = Number(column.dictionary_page_offset || column.data_page_offset);
  const end = start + Number(column.total_compressed_size);
  try {
    const chunk = await bytes.slice(start, end);
    return isNested(column) ? withNullsCounted(chunk, highestLevel(schema, column)) : chunk;
  } catch (cause) {
    if (cause instanceof ParquetError) throw cause;
    const name = column.path_in_schema.map(shown).join(".");
    const reason = reasonOf(cause);
    throw new ParquetError("PARQUET_MALFORMED", { path, column: name, reason, cause });
  }
}

/** Returns the definition level of a value that is there: a level for each part that may lack. */
function highestLevel(schema: SchemaTree, { path_in_schema: path }: ColumnMetaData): number {
  let [level, node]: [number, SchemaTree | undefined] = [0, schema];
  for (const name of path) {
    node = node?.children.find(({ element }) => element.name === name);
    if (node?.element.repetition_type !== "REQUIRED") level += 1;
  }
  return level;
}

function movedTo(place: number, column: ColumnMetaData, length: number): ColumnMetaData {
  const { dictionary_page_offset: _dictionary, ...rest } = column;
  // A dictionary is the first page: the library begins at the first of the two places.
  return { ...rest, data_page_offset: BigInt(place), total_compressed_size: BigInt(length) };
}

function inMemory(pages: ReadonlyMap<number, ArrayBuffer>, byteLength: number): AsyncBuffer {
  return {
    byteLength,
    // Each column is read whole, because of the gaps between them.
    slice: (start) => pages.get(start) ?? new ArrayBuffer(),
  };
}
