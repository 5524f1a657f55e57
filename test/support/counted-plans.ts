import type pg from 'pg';
import type { Database } from '../../src/database/database.js';
import { query, type TestDatabase } from './databases.js';

/** A node of a plan as EXPLAIN (ANALYZE, FORMAT JSON) prints it. */
interface PlanNode {
  'Node Type': string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Join Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}

/** One executed statement: its text, and the rows that all nodes of its plan went through. */
export interface CountedStatement {
  text: string;
  rows: number;
}

const PER_LOOP = [
  'Actual Rows',
  'Rows Removed by Filter',
  'Rows Removed by Join Filter',
  'Rows Removed by Index Recheck',
] as const;

function rowsThrough(node: PlanNode): number {
  const own = PER_LOOP.reduce((sum, name) => sum + (node[name] ?? 0), 0) * (node['Actual Loops'] ?? 1);
  return (node.Plans ?? []).reduce((sum, child) => sum + rowsThrough(child), own);
}

/**
 * Has a database say the plan of each statement with what it really read (auto_explain). To be called before the first
 * connection is opened: it is a setting of the database.
 */
export async function explainAll(database: TestDatabase): Promise<void> {
  const name = new URL(database.url).pathname.slice(1);
  const settings = {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_timing': 'off',
    'auto_explain.log_format': 'json',
    'auto_explain.log_level': 'notice',
  };
  await query(database, `LOAD 'auto_explain'`);
  for (const [setting, value] of Object.entries(settings))
    await query(database, `LOAD 'auto_explain'; ALTER DATABASE ${name} SET ${setting} = '${value}'`);
}

/** Collects the statements over many rows that are executed from now on. */
export function countedStatements(database: Database): CountedStatement[] {
  const counted: CountedStatement[] = [];
  database.bulkPool.on('connect', (client: pg.PoolClient) => {
    client.on('notice', ({ message }) => {
      const at = message?.indexOf('{') ?? -1;
      if (!message?.includes('plan:') || at < 0) return;
      const { 'Query Text': text, Plan } = JSON.parse(message.slice(at)) as { 'Query Text': string; Plan: PlanNode };
      counted.push({ text, rows: rowsThrough(Plan) });
    });
  });
  return counted;
}
