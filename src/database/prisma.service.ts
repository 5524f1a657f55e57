import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '../generated/prisma/client.js';
import { Database } from './database.js';

/** Prisma over the same pool as `Database`. */
@Injectable()
export class PrismaService extends PrismaClient implements OnApplicationShutdown {
  constructor(database: Database) {
    super({ adapter: new PrismaPg(database.pool, { disposeExternalPool: false }) });
  }

  // Workers close in onModuleDestroy, before this: a query after $disconnect() would reconnect and leak.
  async onApplicationShutdown(): Promise<void> {
    await this.$disconnect();
  }
}
