import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Pool } from 'pg';
import { Clock } from '../../config/clock.js';
import { Database, prepared } from '../../database/database.js';
import { retryUntilStored } from '../../database/retries.js';
import { mapIds, platformKey } from '../contract/wire-types.js';

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
export class SpellingsRepository implements OnApplicationShutdown {
  /** Spellings that are not stored yet, by key: no answer waits for the database. */
  private readonly unstored = new Map<string, string>();
  private stopped = false;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  onApplicationShutdown(): void {
    this.stopped = true;
  }

  /** Learns the spelling in an answer. It replaces the one of an event, because calls are known to use it. */
  learnFromAnswer(id: string): void {
    const key = platformKey(id);
    const pause = (ms: number) => (this.stopped ? Promise.reject(new Error('stopped')) : delay(ms));
    this.unstored.set(key, id);
    void retryUntilStored(() => this.store(key, id), this.clock, pause)
      .catch(() => undefined)
      .finally(() => this.unstored.delete(key));
  }

  private async store(key: string, id: string): Promise<void> {
    const statement =
      id === key
        ? 'DELETE FROM platform_spellings WHERE id = $1 AND spelling <> $2'
        : 'INSERT INTO platform_spellings VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET spelling = excluded.spelling';
    await this.database.pool.query(prepared(statement, [key, id]));
  }

  /** Learns the spelling in an event or from an operator, unless the id is known. */
  async learnIfNew(sql: Pick<Pool, 'query'>, id: string): Promise<void> {
    const key = platformKey(id);
    if (id === key) return;
    await sql.query(
      `INSERT INTO platform_spellings SELECT $1, $2 WHERE NOT (${IS_STORED}) ON CONFLICT (id) DO NOTHING`,
      [key, id],
    );
  }

  /** Restores the platform's spelling of every id in a value to be sent. */
  async restore<T>(value: T): Promise<T> {
    const keys: string[] = [];
    mapIds(value, (id) => String(keys.push(platformKey(id))));
    if (keys.length === 0) return value;
    const { rows } = await this.database.pool.query<{ id: string; spelling: string }>(
      prepared('SELECT id, spelling FROM platform_spellings WHERE id = ANY ($1)', [keys]),
    );
    const spellings = new Map([...rows.map(({ id, spelling }) => [id, spelling] as const), ...this.unstored]);
    return mapIds(value, (id) => spellings.get(platformKey(id)) ?? id);
  }
}
