import { Clock } from '../src/config/clock.js';
import { connectionShares } from '../src/database/connect/connection-shares.js';
import { applyMigrations } from '../src/database/migrations.js';
import { PrismaService } from '../src/database/prisma.service.js';
import { Feed } from '../src/feed/feed.js';
import { FeedBell } from '../src/feed/feed-bell.js';
import { FeedNumbers } from '../src/feed/feed-numbers.js';
import { type BenchRow, median } from './bench-row.js';
import { withScratchPostgres } from './scratch-postgres.js';

const WRITERS = 15;
const ROUNDS = 7;
const ROUND_MS = 3_000;
const MIN_RATIO = 0.8;

/** Does nothing after a commit. */
class MutedBell extends FeedBell {
  override readonly ring = (): void => {};
}

/** Transactions per second of writers of the feed whose commits number events and notify, and of those whose commits do not. */
export async function benchFeed(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    await applyMigrations(url);
    const prisma = new PrismaService(url, connectionShares({ DATABASE_CONNECTIONS: 19, ROLES: ['api', 'worker'] }));
    const numbers = new FeedNumbers(prisma);
    const bell = new FeedBell(prisma, new Clock(), numbers);
    const muted = new MutedBell(prisma, new Clock(), numbers);
    bell.listen();
    const rates: Record<'on' | 'off', number[]> = { on: [], off: [] };
    try {
      await rate(prisma, new Feed(prisma, bell)); // until all code is compiled
      for (let round = 0; round < ROUNDS; round += 1) {
        // Ratios drift less if both are measured in turn.
        rates.on.push(await rate(prisma, new Feed(prisma, bell)));
        rates.off.push(await rate(prisma, new Feed(prisma, muted)));
        await numbers.assign();
      }
    } finally {
      bell.onApplicationShutdown();
      await prisma.onApplicationShutdown();
    }
    const [on, off] = [median(rates.on), median(rates.off)];
    const ratio = on / off;
    return [
      { name: `events of ${WRITERS} writers, numbered and notified`, value: on, unit: '/s' },
      { name: '… without numbers and notifications', value: off, unit: '/s' },
      { name: '… ratio', value: ratio, unit: '×', target: `≥ ${MIN_RATIO}`, ok: ratio >= MIN_RATIO },
    ];
  });
}

/** Transactions per second, each of which appends one event. */
async function rate(prisma: PrismaService, feed: Feed): Promise<number> {
  const begun = performance.now();
  const write = async (writer: number) => {
    let written = 0;
    for (; performance.now() - begun < ROUND_MS; written += 1) {
      const event = { type: 'person.synced', subject: `clients/c-${writer}`, data: { written } } as const;
      await prisma.transaction((tx) => feed.append(tx, event));
    }
    return written;
  };
  const written = await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  return (written.reduce((sum, each) => sum + each, 0) * 1_000) / (performance.now() - begun);
}
