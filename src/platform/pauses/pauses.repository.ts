import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { KEYS } from './apis.js';
import type { Pause, Pauses } from './pause-row.js';

const NONE = {
  ...{ limitedUntil: null, limitedTimes: 0, pausedUntil: null, reason: null, status: null, failingSince: null },
  ...{ failures: 0, failing: [], succeededAt: null, succeededUrl: null, succeededBase: null, refusals: 0 },
};

/** Whether calls pause: in the database, so that every process and every restart knows it. */
@Injectable()
export class PausesRepository {
  constructor(private readonly prisma: PrismaService) {}

  /** Reads all pauses. Keys without a row are open. */
  async read(db: Pick<Tx, 'platformPause'> = this.prisma): Promise<Pauses> {
    const rows = new Map((await db.platformPause.findMany()).map((row) => [row.key, row]));
    return new Map(KEYS.map((key) => [key, rows.get(key) ?? { key, ...NONE }]));
  }

  /** Reads all pauses, with the database's time. */
  async readNow(db: Pick<Tx, 'platformPause' | '$queryRaw'> = this.prisma): Promise<{ now: Date; pauses: Pauses }> {
    const [row] = await db.$queryRaw<[{ now: Date }]>`SELECT clock_timestamp() AS now`;
    return { now: row.now, pauses: await this.read(db) };
  }

  /** Locks some pauses until the transaction ends, and reads all. Lock subjects before them. */
  async lock(tx: Tx, keys: readonly string[]): Promise<Pauses> {
    const locked = await tx.$queryRaw<object[]>`
      SELECT 1 FROM platform_pauses WHERE key = ANY (${[...keys]}::text[]) ORDER BY key FOR UPDATE`;
    if (locked.length < keys.length) {
      await tx.platformPause.createMany({ data: KEYS.map((key) => ({ key })), skipDuplicates: true });
      return this.lock(tx, keys);
    }
    return this.read(tx);
  }

  async save(tx: Tx, { key, ...pause }: Pause): Promise<void> {
    await tx.platformPause.update({ where: { key }, data: pause });
  }
}
