import type pg from 'pg';
import { Random } from '../../src/config/random.js';
import { SessionFactsSeal } from '../../src/sessions/model/session-facts.js';
import type { SessionRow } from '../../src/sessions/model/session-row.js';
import { type DataKey, parseDataKeys } from '../../src/vault/data-keys.js';
import { sealedInLayout1 } from '../../src/vault/layout-1.spec-support.js';
import { SEALED_TABLES } from '../../src/vault/sealed-columns.js';
import { Vault } from '../../src/vault/vault.js';

/** Turns a database, sealed with one key, into what the version before layout 2 had stored. @returns how many values */
export async function inFormerLayout(sql: pg.Pool | pg.Client, dataKey: string): Promise<number> {
  const [key] = parseDataKeys([dataKey]) as [DataKey];
  const vault = new Vault([key], Buffer.alloc(32), new Random());
  await formerSessions(sql, key, vault);
  await sql.query('UPDATE people SET user_link = NULL');
  await sql.query('UPDATE platform_users SET person_link = NULL');
  let values = 0;
  for (const [name, table] of Object.entries(SEALED_TABLES)) {
    const keys = Object.keys(table.key);
    for (const [column, { row, formerRow = row, ...as }] of Object.entries(table.columns)) {
      const { rows } = await sql.query(
        `SELECT ${keys.map((one) => `t.${one}::text AS ${one}`)}, t.${column} AS sealed, ${row} AS now, ${formerRow} AS former
         FROM ${name} t ${table.join ?? ''} WHERE t.${column} IS NOT NULL AND substring(t.${column} FOR 1) = '\\x02'`,
      );
      const place = { table: name, column, ...as };
      for (const found of rows) {
        const plain = vault.openBytes({ ...place, row: found.now }, found.sealed);
        await sql.query(
          `UPDATE ${name} SET ${column} = $1 WHERE ${keys.map((one, at) => `${one} = $${at + 2}::${table.key[one]}`).join(' AND ')}`,
          [sealedInLayout1(key, { ...place, row: found.former }, plain), ...keys.map((one) => found[one])],
        );
        values += 1;
      }
    }
  }
  return values;
}

async function formerSessions(sql: pg.Pool | pg.Client, key: DataKey, vault: Vault): Promise<void> {
  const { rows } = await sql.query<SessionRow>('SELECT * FROM sessions');
  for (const row of rows) {
    const facts = new SessionFactsSeal(vault).open(row);
    const place = { table: 'sessions', column: 'error_message', row: row.id };
    const message = facts.error && sealedInLayout1(key, place, Buffer.from(JSON.stringify(facts.error.message)));
    await sql.query(
      `UPDATE sessions SET facts = NULL, date = $2, session_created_at = $3, session_duration_ms = $4,
         recording_duration_ms = $5, error_code = $6, error_message = $7 WHERE id = $1`,
      [
        row.id,
        facts.date,
        facts.sessionCreatedAt,
        facts.sessionDurationMs,
        facts.recordingDurationMs,
        facts.error?.code ?? null,
        message,
      ],
    );
  }
}
