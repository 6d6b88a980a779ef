/** Views for a page: plain data, put together when it is asked for. */

/**
 * Returns plain data for the page. Rejects with HttpRefusal for a query that makes no sense.
 *
 * @param query of the request
 */
export type View = (query: URLSearchParams) => Promise<unknown>;

/** Views by the names of their paths. */
export type Views = Readonly<Record<string, View>>;
