import { Global, Module } from '@nestjs/common';
import { Env } from '../config/env.js';
import { connectionShares } from './connect/connection-shares.js';
import { Database } from './database.js';
import { PrismaService } from './prisma.service.js';

/** PostgreSQL by Prisma. `prepare` completes its address and applies the migrations before Nest starts. */
@Global()
@Module({
  providers: [
    {
      provide: PrismaService,
      inject: [Env],
      useFactory: (env: Env) => new PrismaService(env.DATABASE_URL as string, connectionShares(env)),
    },
    Database,
  ],
  exports: [Database, PrismaService],
})
export class DatabaseModule {}
