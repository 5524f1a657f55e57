import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { until } from '../harness/until.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import type { Database } from '../src/database/database.js';
import { FeedRepository } from '../src/feed/feed.repository.js';
import { usePrograms } from './support/programs.js';
import { ADMIN_KEY, useMirrors } from './support/service.js';

const SEED = Number(process.env.SEED);
const WRITERS = 8;
const EVENTS_EACH = 120;
const KILLS = 6;

describe(`the change feed (SEED=${SEED})`, () => {
  const newMirror = useMirrors();
  const startProgram = usePrograms();
  const folder = mkdtempSync(path.join(tmpdir(), 'feed-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(['poll', 'stream'] as const)(
    'gives each event once and in order to a reader that is killed at random, under eight writers (%s)',
    async (way) => {
      const random = new SeededRandom(SEED);
      const mirror = await newMirror();
      const service = await mirror.start();
      const pool = new pg.Pool({ connectionString: mirror.database.url, max: WRITERS });
      const feed = new FeedRepository({ pool } as unknown as Database);
      const file = path.join(folder, `feed-${way}-${process.pid}`);
      const read = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []);
      const committed = new Set<string>();

      const write = async (writer: number) => {
        for (let number = 0; number < EVENTS_EACH; number++) {
          const tx = await pool.connect();
          await tx.query('BEGIN');
          await feed.append(tx, { type: 'person.synced', subject: 'clients/c', data: { writer, number } });
          await delay(random.fraction() * 12);
          const kept = random.fraction() > 0.1;
          await tx.query(kept ? 'COMMIT' : 'ROLLBACK');
          if (kept) committed.add(`${writer}/${number}`);
          tx.release();
        }
      };
      const readWithKills = async () => {
        for (let round = 0; round <= KILLS; round++) {
          const reader = await startProgram({
            file: 'test/support/feed-reader.mjs',
            args: [service.url, ADMIN_KEY, file, way],
          });
          if (round < KILLS) await delay(100 + random.fraction() * 300);
          else await until('everything is read', () => read().length >= committed.size && writing === 0);
          await reader.kill('SIGKILL');
        }
      };
      let writing = WRITERS;
      const writers = Array.from({ length: WRITERS }, (_, writer) => write(writer).finally(() => writing--));
      await Promise.all([...writers, readWithKills()]);
      await pool.end();

      const seen = read().map((line) => line.split(' ') as [string, string]);
      expect(seen.map(([, event]) => event).sort()).toEqual([...committed].sort());
      expect(seen.map(([cursor]) => Number(cursor))).toEqual(seen.map((_, place) => place + 1));
      for (let writer = 0; writer < WRITERS; writer++) {
        const numbers = seen.flatMap(([, event]) =>
          event.startsWith(`${writer}/`) ? [Number(event.split('/')[1])] : [],
        );
        expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
      }
    },
    60_000,
  );
});
