import type { PrismaService, Tx } from '../../src/database/prisma.service.js';

/** A transaction that stays open until its test ends it. */
export interface OpenTransaction {
  tx: Tx;
  commit(): Promise<void>;
  rollBack(): Promise<void>;
}

const ROLLED_BACK = new Error('The test rolls back.');

/** Begins a transaction, whose work the test does from outside. */
export function openTransaction(prisma: PrismaService): Promise<OpenTransaction> {
  return new Promise((resolve, reject) => {
    const ended = prisma.transaction(
      (tx) =>
        new Promise<void>((done, fail) => {
          const endedAs = async (isKept: boolean) => {
            if (isKept) done();
            else fail(ROLLED_BACK);
            await ended.catch((error: unknown) => {
              if (error !== ROLLED_BACK) throw error;
            });
          };
          resolve({ tx, commit: () => endedAs(true), rollBack: () => endedAs(false) });
        }),
    );
    ended.catch(reject);
  });
}
