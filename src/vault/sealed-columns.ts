/** The place that the values of a column are sealed for (`SealedPlace`), in SQL over the row `t`. */
interface SealedIn {
  /** Of the place; the column's own table unless told. */
  table?: string;
  /** Of the place; its own name unless told. */
  column?: string;
  row: string;
}

/** A table with sealed columns. */
export interface SealedTable {
  /** Its primary key: columns and their types. */
  key: Record<string, string>;
  /** Joins that `row` needs. */
  join?: string;
  columns: Record<string, SealedIn>;
}

const PERSON = `t.kind::text || '/' || t.external_id`;
const PROFILE = { table: 'people', column: 'profile', row: PERSON };
const OF_ID = { row: 't.id::text' };
const OF_SESSION = { row: 't.session::text' };

/**
 * Every sealed column of the schema, and what its values are bound to. Rotation reads this list, and a test fails if a
 * column that the schema calls sealed is missing.
 */
export const SEALED_TABLES: Record<string, SealedTable> = {
  people: {
    key: { id: 'uuid' },
    columns: {
      profile: PROFILE,
      applied_profile: PROFILE,
      attempt_profile: PROFILE,
      invite_url: { row: PERSON },
      error_text: { row: PERSON },
    },
  },
  imports: { key: { id: 'uuid' }, columns: { files: OF_ID } },
  import_rows: { key: { import_id: 'uuid', row_no: 'int' }, columns: { profile: PROFILE, was_profile: PROFILE } },
  import_raw_rows: {
    key: { import_id: 'uuid', first_row: 'int' },
    columns: { sealed: { row: `t.import_id::text || '/' || t.first_row` } },
  },
  idempotency_records: {
    key: { id: 'uuid' },
    columns: { body: { row: `t.id::text || '/' || encode(t.scope_hash, 'hex')` } },
  },
  sessions: { key: { id: 'uuid' }, columns: { facts: OF_ID } },
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
  session_requests: { key: { session: 'uuid' }, columns: { body: OF_SESSION } },
  processing_sessions: { key: { processing_id: 'text' }, columns: { answer: { row: 't.processing_id' } } },
  processing_notices: { key: { delivery_id: 'text' }, columns: { payload: { row: 't.delivery_id' } } },
  compliance_jobs: { key: { id: 'uuid' }, columns: { request: OF_ID, result: OF_ID } },
  webhook_deliveries: { key: { id: 'bigint' }, columns: { body: { row: `encode(t.signature, 'hex')` } } },
  vault_keys: { key: { purpose: 'text' }, columns: { wrapped: { row: 't.purpose' } } },
};

/** Table and column of every place that values are sealed for, as the metric names it. */
export const SEALED_PLACES = [
  ...new Set(
    Object.entries(SEALED_TABLES).flatMap(([table, { columns }]) =>
      Object.entries(columns).map(([column, place]) => `${place.table ?? table}.${place.column ?? column}`),
    ),
  ),
];
