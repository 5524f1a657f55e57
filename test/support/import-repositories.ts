import { Random } from '../../src/config/random.js';
import type { Database } from '../../src/database/database.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { Feed } from '../../src/feed/feed.js';
import { ImportsRepository } from '../../src/imports/model/imports.repository.js';
import { StagingRepository } from '../../src/imports/upload/staging.repository.js';
import { ProfileSeal } from '../../src/people/model/profile.js';
import { Vault } from '../../src/vault/vault.js';
import { freshDatabase, openDatabase } from './databases.js';

/** A vault of keys that are the same in every test. */
export const testVault = () => new Vault([{ id: 'k', key: Buffer.alloc(32, 1) }], Buffer.alloc(32, 2), new Random());

/** The repositories of imports over a database of a test's own. */
export async function importRepositories() {
  const home = await freshDatabase();
  const database: Database = openDatabase(home);
  const prisma = new PrismaService(database);
  const seal = new ProfileSeal(testVault());
  return {
    database,
    seal,
    imports: new ImportsRepository(database, prisma, testVault(), new Feed(database)),
    staging: new StagingRepository(database, seal, testVault()),
    async close() {
      await prisma.onApplicationShutdown();
      await database.onApplicationShutdown();
      await home.drop();
    },
  };
}
