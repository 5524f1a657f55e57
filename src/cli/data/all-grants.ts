import type pg from 'pg';
import type { GrantRow, GrantTable } from '../../access/identity/grants.js';
import { API_KEY_GRANTS } from '../../access/keys/api-keys.repository.js';
import { SESSION_GRANTS } from '../../access/sign-in/browser-sessions.repository.js';
import type { Macs } from '../../vault/macs.js';

type Sql = Pick<pg.ClientBase, 'query'>;
type Grants = GrantTable<{ id: string }>;
type Row = GrantRow & { id: string };

/** Every table whose rows grant rights, and carry a MAC. */
export const ALL_GRANTS: readonly Grants[] = [API_KEY_GRANTS, SESSION_GRANTS];

/** The rows that grant nothing because their MAC is missing or wrong, so this service did not write them. */
export async function rowsWithoutMac(sql: Sql, macs: Macs): Promise<{ table: string; id: string }[]> {
  const found: { table: string; id: string }[] = [];
  for (const table of ALL_GRANTS) {
    for (const row of await rowsOf(sql, table)) {
      if (!table.isGenuine(macs, row)) found.push({ table: table.name, id: row.id });
    }
  }
  return found;
}

/** Renews valid MACs of a table by the first key, unless a row changes concurrently. @returns how many it renewed */
export async function renewMacs(sql: Sql, macs: Macs, table: Grants): Promise<number> {
  let renewed = 0;
  for (const row of await rowsOf(sql, table)) {
    if (!row.mac || macs.isCurrent(row.mac) || !table.isGenuine(macs, row)) continue;
    const { rowCount } = await sql.query(`UPDATE ${table.name} SET mac = $3 WHERE id = $1 AND mac = $2`, [
      row.id,
      row.mac,
      table.macOf(macs, row),
    ]);
    renewed += rowCount ?? 0;
  }
  return renewed;
}

async function rowsOf(sql: Sql, { name, selected }: Grants): Promise<Row[]> {
  return (await sql.query<Row>(`SELECT ${selected}, mac FROM ${name} ORDER BY id`)).rows;
}
