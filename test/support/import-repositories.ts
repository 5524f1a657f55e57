import type { Database } from '../../src/database/database.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import { Feed } from '../../src/feed/feed.js';
import { ImportsRepository } from '../../src/imports/model/imports.repository.js';
import { StagingRepository } from '../../src/imports/upload/staging.repository.js';
import { ProfileSeal } from '../../src/people/model/profile.js';
import { auditOf, testVault } from './audit.js';
import { freshDatabase } from './databases.js';
import { openDatabase } from './open-database.js';

/** The repositories of imports over a database of a test's own. */
export async function importRepositories() {
  const home = await freshDatabase();
  const database: Database = openDatabase(home);
  const prisma = new PrismaService(database);
  const seal = new ProfileSeal(testVault());
  return {
    database,
    seal,
    imports: new ImportsRepository(database, prisma, testVault(), new Feed(database), auditOf(database)),
    staging: new StagingRepository(database, seal, testVault()),
    async close() {
      await prisma.onApplicationShutdown();
      await database.onApplicationShutdown();
      await home.drop();
    },
  };
}
