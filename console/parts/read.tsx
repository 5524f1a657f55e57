import {
  type InfiniteData,
  type UseQueryOptions,
  type UseQueryResult,
  useInfiniteQuery,
  useQuery,
} from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { body } from '../api/client.js';
import { usePolling } from '../api/queries.js';
import { DataTable, type Table } from './layout.js';
import { ErrorNote, Waiting } from './notes.js';
import { number } from './values.js';

type Reading<T> = Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>;

/** Reads one thing of the API. @param name the key of the query */
export function useRead<T>(
  name: readonly unknown[],
  call: () => Promise<{ data: T }>,
  options: Omit<UseQueryOptions<T>, 'queryKey' | 'queryFn'> = {},
): UseQueryResult<T> {
  return useQuery({ queryKey: name, queryFn: () => body(call()), ...options });
}

/** Shows the result of a query once it is loaded; an earlier result stays visible below an error. */
export function Loaded<T>({ query, children }: { query: Reading<T>; children: (data: T) => ReactNode }) {
  const { data, error, refetch } = query;
  return (
    <>
      {error && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data === undefined ? !error && <Waiting /> : children(data)}
    </>
  );
}

/** Reads one thing of the API and shows it. */
export function Read<T>(props: {
  name: readonly unknown[];
  call: () => Promise<{ data: T }>;
  children: (data: T) => ReactNode;
}) {
  return <Loaded query={useRead(props.name, props.call)}>{props.children}</Loaded>;
}

interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

interface Source<T> {
  /** The list and its filters. */
  name: readonly unknown[];
  read: (cursor: string | undefined) => Promise<{ data: Page<T> }>;
  /** How often to read it, in milliseconds, if the change feed has no events about it. */
  everyMs?: number;
  /** Shown instead of an empty list. */
  empty: ReactNode;
}

const rowsOf = <T,>({ pages }: InfiniteData<Page<T>>): T[] => pages.flatMap(({ items }) => items);

/** A list of the API, read page by page with a button for more. */
export function Paged<T>(props: Source<T> & { children: (rows: T[]) => ReactNode }) {
  const { name, read, everyMs = 0, empty, children } = props;
  const query = useInfiniteQuery({
    queryKey: name,
    queryFn: ({ pageParam }) => body(read(pageParam)),
    refetchInterval: usePolling(everyMs),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    select: rowsOf<T>,
  });
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  return (
    <Loaded query={query}>
      {(rows) => (
        <>
          {rows.length === 0 ? <p className="note quiet">{empty}</p> : children(rows)}
          <p className="help" aria-live="polite">
            {rows.length > 0 && `${number(rows.length)} shown${hasNextPage ? '; there are more' : ''}. `}
            {hasNextPage && (
              <button type="button" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
                {isFetchingNextPage ? 'Loading…' : 'Show more'}
              </button>
            )}
          </p>
        </>
      )}
    </Loaded>
  );
}

/** A list of the API as a table. */
export function List<T>({ caption, columns, keyOf, ...source }: Source<T> & Omit<Table<T>, 'rows'>) {
  return <Paged {...source}>{(rows) => <DataTable {...{ caption, columns, keyOf, rows }} />}</Paged>;
}
