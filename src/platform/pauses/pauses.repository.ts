import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { USER_OPERATIONS } from '../contract/capabilities.js';
import { type Pause, USER_MANAGEMENT } from './pause-rule.js';
import { stopOf } from './stop.js';

/** The pauses of user management and of its operations, by their keys. */
export type Pauses = ReadonlyMap<string, Pause>;

const KEYS = [USER_MANAGEMENT, ...USER_OPERATIONS];

const NONE = {
  ...{ limitedUntil: null, limitedTimes: 0, pausedUntil: null, reason: null, status: null, failingSince: null },
  ...{ failures: 0, failingPeople: [], succeededAt: null, succeededUrl: null, succeededBase: null, refusals: 0 },
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
  async readNow(): Promise<{ now: Date; pauses: Pauses }> {
    const [row] = await this.prisma.$queryRaw<[{ now: Date }]>`SELECT clock_timestamp() AS now`;
    return { now: row.now, pauses: await this.read() };
  }

  /** Why calls do not go out: of all of them, or else of the first operation that pauses; undefined if none does. */
  async stopped(): Promise<ReturnType<typeof stopOf>> {
    const { now, pauses } = await this.readNow();
    return [...pauses.values()].flatMap((pause) => stopOf(pause, now) ?? [])[0];
  }

  /** Locks some pauses until the transaction ends, and reads all. Lock people before them. */
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
