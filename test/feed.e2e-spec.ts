import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { until } from '../harness/until.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import type { Database } from '../src/database/database.js';
import { Feed } from '../src/feed/feed.js';
import { ADMIN_KEY } from './support/app.js';
import { usePrograms } from './support/programs.js';
import { useMirrors } from './support/service.js';

const SEED = Number(process.env.SEED);
const WRITERS = 8;
const EVENTS_EACH = 100;
const KILLS = 5;
const KILLS_BEFORE_THE_MIDDLE = 2;
const WAYS = ['poll', 'stream'] as const;

describe(`the change feed, while eight writers write (SEED=${SEED})`, () => {
  const newMirror = useMirrors();
  const startProgram = usePrograms();
  const folder = mkdtempSync(path.join(tmpdir(), 'feed-'));
  const committed = new Set<string>();
  const killed = { poll: 0, stream: 0 };
  let writing = WRITERS;
  afterAll(() => rmSync(folder, { recursive: true }));

  const fileOf = (way: string) => path.join(folder, way);
  function read(way: string): string[] {
    try {
      return readFileSync(fileOf(way), 'utf8').split('\n').slice(0, -1);
    } catch {
      return []; // nothing was read yet
    }
  }

  beforeAll(async () => {
    const mirror = await newMirror();
    const service = await mirror.start();
    const pool = new pg.Pool({ connectionString: mirror.database.url, max: WRITERS });
    const feed = new Feed({ pool } as unknown as Database);

    /** Readers that start slowly do not come when all is written. */
    const someWereKilled = () =>
      until('readers of both ways were killed', () => Math.min(...Object.values(killed)) >= KILLS_BEFORE_THE_MIDDLE);

    const write = async (writer: number) => {
      const random = new SeededRandom(SEED + writer);
      for (let number = 0; number < EVENTS_EACH; number++) {
        if (number === EVENTS_EACH / 2) await someWereKilled();
        const tx = await pool.connect();
        await tx.query('BEGIN');
        await feed.append(tx, { type: 'person.synced', subject: 'clients/c', data: { writer, number } });
        await delay(random.fraction() * 12);
        const kept = random.fraction() > 0.1;
        await tx.query(kept ? 'COMMIT' : 'ROLLBACK');
        if (kept) committed.add(`${writer}/${number}`);
        tx.release();
      }
      writing -= 1;
    };

    /** Each reader is killed once it has read some more, wherever it is then; the last one reads to the end. */
    const readWithKills = async (way: (typeof WAYS)[number], random: SeededRandom) => {
      for (let kills = 0; kills <= KILLS; kills++) {
        const reader = await startProgram({
          file: 'test/support/feed-reader.mjs',
          args: [service.url, ADMIN_KEY, fileOf(way), way],
        });
        const enough = read(way).length + 1 + random.below((WRITERS * EVENTS_EACH) / KILLS / 2);
        const isAllRead = () => writing === 0 && read(way).length >= committed.size;
        // One that started slowly may have read all that there is by then.
        if (kills < KILLS) await until(`${enough} events are read`, () => read(way).length >= enough || isAllRead());
        else await until('everything is read', isAllRead);
        await reader.kill('SIGKILL');
        killed[way] += 1;
      }
    };

    await Promise.all([
      ...Array.from({ length: WRITERS }, (_, writer) => write(writer)),
      ...WAYS.map((way, at) => readWithKills(way, new SeededRandom(SEED + at))),
    ]);
    await pool.end();
  });

  it.each(WAYS)('gives each event once and in order to a reader that is killed five times (%s)', (way) => {
    const seen = read(way).map((line) => line.split(' ') as [string, string]);
    expect(seen.map(([, event]) => event).sort()).toEqual([...committed].sort());
    expect(seen.map(([cursor]) => Number(cursor))).toEqual(seen.map((_, place) => place + 1));
    for (let writer = 0; writer < WRITERS; writer++) {
      const numbers = seen.flatMap(([, event]) =>
        event.startsWith(`${writer}/`) ? [Number(event.split('/')[1])] : [],
      );
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    }
  });
});
