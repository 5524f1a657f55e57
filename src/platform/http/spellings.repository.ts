import { Injectable } from '@nestjs/common';
import type { Pool } from 'pg';
import { Database } from '../../database/database.js';
import { isPlatformUuid, platformKey } from '../contract/wire-types.js';

/** Maximum ids whose spelling a process remembers. */
const CACHE_SIZE = 10_000;

/** SQL condition: id $1 is stored already, so that its spelling is known. */
const IS_STORED = `EXISTS (SELECT FROM people WHERE platform_user_id = $1)
  OR EXISTS (SELECT FROM platform_users WHERE platform_user_id = $1)
  OR EXISTS (SELECT FROM sessions WHERE session_id = $1)
  OR EXISTS (SELECT FROM processing_sessions WHERE processing_id = $1)
  OR EXISTS (SELECT FROM compliance_jobs WHERE job_id = $1)`;

/**
 * The platform's own spelling of its ids, for calls. Everything else uses the `platformKey` of an id, so that it is the
 * same in answers, in events and from an operator. Only spellings that differ from it are stored.
 */
@Injectable()
export class SpellingsRepository {
  /** Spellings by key. */
  private readonly cache = new Map<string, string>();

  constructor(private readonly database: Database) {}

  /** Learns the spelling in an answer, which replaces that in an event: it is what calls are known to use. */
  async learnFromAnswer(id: string): Promise<void> {
    const key = platformKey(id);
    this.cache.delete(key);
    const statement =
      id === key
        ? 'DELETE FROM platform_spellings WHERE id = $1 AND spelling <> $2'
        : `INSERT INTO platform_spellings VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET spelling = excluded.spelling`;
    await this.database.pool.query(statement, [key, id]);
  }

  /** Learns the spelling in an event or from an operator, unless the id is known. */
  async learnIfNew(sql: Pick<Pool, 'query'>, id: string): Promise<void> {
    const key = platformKey(id);
    if (id === key) return;
    this.cache.delete(key);
    await sql.query(
      `INSERT INTO platform_spellings SELECT $1, $2 WHERE NOT (${IS_STORED}) ON CONFLICT (id) DO NOTHING`,
      [key, id],
    );
  }

  /** Restores the platform's spelling of every id in a value to be sent. The EHR's own ids (`partner…`) stay. */
  async restore<T>(value: T): Promise<T> {
    const keys = new Set<string>();
    mapIds(value, (id) => {
      keys.add(platformKey(id));
      return id;
    });
    const unknown = [...keys].filter((key) => !this.cache.has(key));
    if (unknown.length > 0) await this.read(unknown);
    return mapIds(value, (id) => {
      const spelling = this.cache.get(platformKey(id));
      return spelling === undefined || spelling === platformKey(id) ? id : spelling;
    }) as T;
  }

  private async read(keys: string[]): Promise<void> {
    const { rows } = await this.database.pool.query<{ id: string; spelling: string }>(
      'SELECT id, spelling FROM platform_spellings WHERE id = ANY ($1)',
      [keys],
    );
    if (this.cache.size + keys.length > CACHE_SIZE) this.cache.clear();
    for (const key of keys) this.cache.set(key, key);
    for (const { id, spelling } of rows) this.cache.set(id, spelling);
  }
}

/** Replaces every UUID in a value, except in the EHR's own fields. */
function mapIds(value: unknown, change: (id: string) => string): unknown {
  if (isPlatformUuid(value)) return change(value);
  if (Array.isArray(value)) return value.map((item) => mapIds(item, change));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, item]) => [
    name,
    name.startsWith('partner') ? item : mapIds(item, change),
  ]);
  return Object.fromEntries(entries);
}
