import { Global, Module } from '@nestjs/common';
import { Env } from '../config/env.js';
import { connectionShares } from './connect/connection-shares.js';
import { Database } from './database.js';
import { PrismaService } from './prisma.service.js';

/** PostgreSQL by SQL and by Prisma. `prepare` completes its address and applies the migrations before Nest starts. */
@Global()
@Module({
  providers: [
    {
      provide: Database,
      inject: [Env],
      useFactory: (env: Env) => new Database(env.DATABASE_URL as string, connectionShares(env)),
    },
    PrismaService,
  ],
  exports: [Database, PrismaService],
})
export class DatabaseModule {}
