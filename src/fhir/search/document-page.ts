import type { PoolClient } from 'pg';
import { decodeCursor, encodeCursor, type Page, pageOf } from '../../http/request/page.js';
import type { StoredDocument } from '../../sessions/read/session-reader.js';
import {
  type ChangeKey,
  type DateKey,
  type DocumentFilter,
  isByDate,
  type ScannedRow,
  statementByChange,
  statementByDate,
} from './document-statement.js';

/** A document, and our id of its session's row. */
export type FoundDocument = StoredDocument & { session: string };

/** Maximum versions or sessions that a page reads to find its documents, so that it ends long before the timeout. */
const SCAN_LIMIT = 1000;

/**
 * Reads a page of documents, which may have fewer documents than `count`, or none, although it is not the last one.
 *
 * @param tx a transaction, whose settings change
 * @throws {Problem} 400 `bad-cursor`
 */
export async function documentPage(
  tx: PoolClient,
  filter: DocumentFilter,
  { cursor, count, scanned = SCAN_LIMIT }: { cursor: string | undefined; count: number; scanned?: number },
): Promise<Page<FoundDocument>> {
  const limits = { rows: count + 1, scanned };
  const { settings, text, values, keyOf } = isByDate(filter)
    ? statementByDate(filter, decodeCursor<DateKey>(cursor, 'time', 'uuid', 'number'), limits)
    : statementByChange(filter, decodeCursor<ChangeKey>(cursor, 'time', 'uuid', 'uuid'), limits);
  if (settings !== '') await tx.query(settings);
  const { rows } = await tx.query<ScannedRow>(text, values);
  const { items, nextCursor } = pageOf(rows, count, keyOf);
  const end = rows.at(-1);
  const isCut = nextCursor === null && end?.isScanEnd;
  return {
    items: items.filter((row) => row.documentId !== null) as (ScannedRow & FoundDocument)[],
    nextCursor: isCut ? encodeCursor(keyOf({ ...end, documentId: null })) : nextCursor,
  };
}
