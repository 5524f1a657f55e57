import type pg from 'pg';

/** A statement with its parameters, as the product sent it. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Filter?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: PlanNode[];
}

/** The parts of a plan about large tables. */
interface PlanView {
  /** Nodes that read a whole large table or index, which is forbidden. */
  readonly fullReads: string[];
  /** Rows read from large tables; 0 unless the statement was executed. */
  readonly rowsRead: number;
  /** Pages read from tables and indexes; 0 unless the statement was executed. */
  readonly pagesRead: number;
}

/** Options of `planOf`. */
interface PlanOptions {
  /** The tables that grow with time. */
  readonly large: readonly string[];
  /** Partial indexes that stay small regardless of their table, so that a full read is allowed. */
  readonly small?: readonly string[];
  /** Also executes the statement, and rolls it back. */
  readonly execute?: boolean;
}

/** The current plan of a statement, or the plan of its execution. */
export async function planOf(
  client: Pick<pg.ClientBase, 'query'>,
  { text, values }: Statement,
  { large, small = [], execute = false }: PlanOptions,
): Promise<PlanView> {
  await client.query('BEGIN');
  try {
    const { rows } = await client.query(`EXPLAIN (FORMAT JSON${execute ? ', ANALYZE, BUFFERS' : ''}) ${text}`, [
      ...values,
    ]);
    const whole: PlanNode = rows[0]['QUERY PLAN'][0].Plan;
    const reads = readsIn(await indexedTables(client), whole, large);
    return {
      fullReads: reads.filter((node) => isFullRead(node, [...small])).map(nameOf),
      rowsRead: reads.reduce((sum, node) => sum + rowsOf(node), 0),
      pagesRead: (whole['Shared Hit Blocks'] ?? 0) + (whole['Shared Read Blocks'] ?? 0),
    };
  } finally {
    await client.query('ROLLBACK');
  }
}

/** The nodes of a plan that read a whole large table or index. */
export const fullReadsIn = (tables: TableOfIndex, plan: PlanNode, { large, small = [] }: PlanOptions): string[] =>
  readsIn(tables, plan, large)
    .filter((node) => isFullRead(node, [...small]))
    .map(nameOf);

/** The rows of large tables that an executed plan read. */
export const rowsReadIn = (tables: TableOfIndex, plan: PlanNode, large: readonly string[]): number =>
  readsIn(tables, plan, large).reduce((sum, node) => sum + rowsOf(node), 0);

const readsIn = (tables: TableOfIndex, plan: PlanNode, large: readonly string[]): PlanNode[] =>
  flat(plan).filter((node) => large.includes(tableOf(node, tables)));

/** Keeps a table without statistics, as just after its rows were inserted. */
async function neverAnalysed(client: Pick<pg.ClientBase, 'query'>, table: string): Promise<void> {
  await client.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
}

/**
 * Makes the planner believe that a table of some thousands of rows has this many similar rows. Turns off autovacuum for
 * the table.
 *
 * @param analysed true if it has statistics of their values; otherwise it knows only their number
 */
export async function pretendRowCount(
  rows: number,
  client: Pick<pg.ClientBase, 'query'>,
  { table, analysed }: { table: string; analysed: boolean },
): Promise<void> {
  await neverAnalysed(client, table);
  if (analysed) await client.query(`ANALYZE ${table}`);
  await client.query(
    `UPDATE pg_class SET reltuples = CASE WHEN oid = $1::regclass THEN $2::float8 ELSE reltuples * $2::float8 / (SELECT count(*) FROM ${table}) END,
       relpages = pg_relation_size(oid) / current_setting('block_size')::int
     WHERE oid = $1::regclass OR $3 AND oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = $1::regclass)`,
    [table, rows, analysed],
  );
}

/** Deletes the planner's statistics of a table. */
export async function forgetStatistics(client: Pick<pg.ClientBase, 'query'>, table: string): Promise<void> {
  await client.query('DELETE FROM pg_statistic WHERE starelid = $1::regclass', [table]);
  await client.query('UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE oid = $1::regclass', [table]);
}

/**
 * Fills a table with copies of its rows. Unique values are replaced, so that indexes get their real size. No copy is due,
 * and its owner does not exist, because foreign keys are not checked.
 *
 * @param copies of each row
 */
async function multiply(copies: number, client: Pick<pg.ClientBase, 'query'>, table: string): Promise<void> {
  const { rows: columns } = await client.query<Column>(
    `SELECT a.attname AS name, a.atttypid::regtype::text AS type,
       EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND a.attnum = ANY(i.indkey)
         AND (i.indisunique OR a.atttypid IN ('bytea'::regtype, 'uuid'::regtype))) AS is_unique,
       coalesce(pg_get_expr(d.adbin, d.adrelid), '') LIKE 'nextval%' AS is_identity,
       a.atttypid = 'bytea'::regtype AND NOT a.attnotnull AND NOT EXISTS (
         SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND a.attnum = ANY(i.indkey)) AS is_sealed
     FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''`,
    [table],
  );
  // An encrypted value can be decrypted only in its own row.
  const copied = columns.filter(({ is_identity, is_sealed }) => !is_identity && !is_sealed);
  const values = copied.map(({ name, type, is_unique }) => {
    if (name in NOT_DUE) return NOT_DUE[name];
    return is_unique ? (NEW_VALUES[type]?.(name) ?? name) : name;
  });
  await client.query('SET session_replication_role = replica');
  await client.query(
    `INSERT INTO ${table} (${copied.map(({ name }) => name).join(', ')})
     SELECT ${values.join(', ')} FROM ${table}, generate_series(1, $1) AS copy ON CONFLICT DO NOTHING`,
    [copies],
  );
  await client.query('RESET session_replication_role');
}

interface Column {
  name: string;
  type: string;
  is_unique: boolean;
  is_identity: boolean;
  is_sealed: boolean;
}

/** Columns that would make copies due, with their values in copies. */
const NOT_DUE: Readonly<Record<string, string>> = { due_at: 'NULL', ended_at: 'NULL', changed: 'false' };

/** Another value for each copy, as SQL. */
const NEW_VALUES: Record<string, (column: string) => string> = {
  uuid: (column) => `CASE WHEN ${column} IS NOT NULL THEN gen_random_uuid() END`,
  text: (column) => `'zz-' || ${column} || '-' || copy`, // behind the originals in every list
  bigint: (column) => `${column} + copy * 1000000000::bigint`,
  bytea: (column) => `${column} || int4send(copy)`,
};

/**
 * Fills a table with copies of its rows, up to this many.
 *
 * @throws {Error} if the table is empty
 */
export async function fillTo(rows: number, client: Pick<pg.ClientBase, 'query'>, table: string): Promise<void> {
  const { rows: found } = await client.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${table}`);
  const count = found[0]?.count ?? 0;
  if (count === 0) throw new Error(`${table} has no rows to copy: the first day left none.`);
  if (count < rows) await multiply(Math.ceil(rows / count) - 1, client, table);
}

const flat = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flat)];

/** An index-only scan names no table. */
const tableOf = (node: PlanNode, tables: TableOfIndex): string =>
  node['Relation Name'] ?? tables.get(node['Index Name'] ?? '') ?? '';

function isFullRead(node: PlanNode, small: string[]): boolean {
  if (node['Node Type'] === 'Seq Scan') return true;
  if (!/Index (Only )?Scan/.test(node['Node Type']) || small.includes(node['Index Name'] ?? '')) return false;
  // Without a condition and without a filter it is read in its order, as far as a limit lets it.
  return node['Index Cond'] === undefined && (node.Filter !== undefined || node['Node Type'].startsWith('Bitmap'));
}

const nameOf = (node: PlanNode): string =>
  [node['Node Type'], node['Relation Name'], node['Index Name'], node.Filter].filter(Boolean).join(' · ');

function rowsOf(node: PlanNode): number {
  if (!/Scan/.test(node['Node Type']) || node['Node Type'].startsWith('Bitmap Index')) return 0;
  const each =
    (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
  return Math.round(each * (node['Actual Loops'] ?? 0));
}

/** The table of each index, by the index's name. */
type TableOfIndex = ReadonlyMap<string, string>;

export async function indexedTables(client: Pick<pg.ClientBase, 'query'>): Promise<TableOfIndex> {
  const { rows } = await client.query<{ name: string; table: string }>(
    `SELECT indexrelid::regclass::text AS name, indrelid::regclass::text AS table FROM pg_index`,
  );
  return new Map(rows.map(({ name, table }) => [name, table]));
}
