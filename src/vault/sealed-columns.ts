/** The place of a column's values (`SealedPlace`), in SQL over the row `t`. */
interface SealedIn {
  /** Defaults to the column's table. */
  table?: string;
  /** Defaults to the column's name. */
  column?: string;
  row: string;
}

/** A table with encrypted columns. */
export interface SealedTable {
  /** Columns of the primary key and their types. */
  key: Record<string, string>;
  /** Joins that `row` needs. */
  join?: string;
  columns: Record<string, SealedIn>;
}

const OF_ID = { row: 't.id::text' };
const PROFILE = { ...OF_ID, table: 'people', column: 'profile' };
const OF_SESSION = { row: 't.session::text' };

/**
 * Every encrypted column of the schema, and the place that its values are bound to. Rotation reads this list, and a test
 * fails if a column that the schema calls sealed is missing.
 */
export const SEALED_TABLES: Record<string, SealedTable> = {
  people: {
    key: { id: 'uuid' },
    columns: {
      profile: PROFILE,
      applied_profile: PROFILE,
      unsettled_profile: PROFILE,
      invite_url: OF_ID,
      error_text: OF_ID,
    },
  },
  imports: { key: { id: 'uuid' }, columns: { files: OF_ID } },
  import_rows: {
    key: { import_id: 'uuid', row_no: 'int' },
    columns: {
      profile: { row: `t.import_id::text || '/' || t.row_no` },
      cells: { row: `t.import_id::text || '/' || t.row_no` },
    },
  },
  import_records: {
    key: { import_id: 'uuid', block_no: 'int' },
    columns: { sealed: { row: `t.import_id::text || '/' || t.block_no` } },
  },
  idempotency_records: {
    key: { id: 'uuid' },
    columns: { body: { row: `t.id::text || '/' || encode(t.scope_hash, 'hex')` } },
  },
  sessions: { key: { id: 'uuid' }, columns: { facts: OF_ID, request: OF_ID } },
  document_revisions: {
    key: { document: 'uuid', revision: 'int' },
    join: 'JOIN session_documents d ON d.id = t.document',
    columns: {
      notes: { row: `d.session::text || '/' || t.document || '/' || t.revision` },
    },
  },
  session_insights: {
    key: { session: 'uuid' },
    columns: { transcript: OF_SESSION, topics: OF_SESSION, named_entities: OF_SESSION, analytics: OF_SESSION },
  },
  processing_sessions: { key: { processing_id: 'text' }, columns: { answer: { row: 't.processing_id' } } },
  compliance_jobs: { key: { id: 'uuid' }, columns: { files: OF_ID, message: OF_ID, result: OF_ID } },
  subscriptions: { key: { id: 'uuid' }, columns: { secret: OF_ID, former_secret: OF_ID, headers: OF_ID } },
  webhook_deliveries: { key: { id: 'bigint' }, columns: { body: { row: `encode(t.signature, 'hex')` } } },
};

/** Table and column of every place, as the metric names it. */
export const SEALED_PLACES = [
  ...new Set(
    Object.entries(SEALED_TABLES).flatMap(([table, { columns }]) =>
      Object.entries(columns).map(([column, place]) => `${place.table ?? table}.${place.column ?? column}`),
    ),
  ),
];
