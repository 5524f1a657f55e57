import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Clock } from '../../config/clock.js';
import { PrismaService, toBytes } from '../../database/prisma.service.js';
import type { ApiKey } from '../../generated/prisma/client.js';
import type { Scope } from '../identity/scopes.js';

/** A key as it is kept; its hash stays in the database. */
export type ApiKeyRow = Omit<ApiKey, 'hash' | 'scopes'> & { scopes: Scope[] };

const omit = { hash: true } as const;

@Injectable()
export class ApiKeysRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly clock: Clock,
  ) {}

  /** The key with this hash, when it is not revoked. */
  async findLive(hash: Buffer): Promise<ApiKeyRow | null> {
    return (await this.prisma.apiKey.findUnique({
      where: { hash: toBytes(hash), revokedAt: null },
      omit,
    })) as ApiKeyRow | null;
  }

  async insert(
    tx: pg.PoolClient,
    { hash, scopes, ...key }: Pick<ApiKeyRow, 'id' | 'name' | 'prefix' | 'scopes' | 'createdBy'> & { hash: Buffer },
  ): Promise<ApiKeyRow> {
    const prisma = await this.prisma.in(tx);
    const data = { ...key, hash: toBytes(hash), scopes: { set: scopes } };
    return (await prisma.apiKey.create({ data, omit })) as ApiKeyRow;
  }

  /** Revokes a key; one that is revoked already keeps its time. @returns whether there is such a key */
  async revoke(tx: pg.PoolClient, id: string): Promise<boolean> {
    const prisma = await this.prisma.in(tx);
    await prisma.apiKey.updateMany({ where: { id, revokedAt: null }, data: { revokedAt: this.clock.now() } });
    return (await prisma.apiKey.count({ where: { id } })) > 0;
  }

  /** Keys in the order in which they were made, revoked ones too. @param after creation time and id of the last one */
  async list(limit: number, after: readonly [string, string] | undefined): Promise<ApiKeyRow[]> {
    const [createdAt, id] = after ?? [];
    return (await this.prisma.apiKey.findMany({
      where: createdAt === undefined ? {} : { OR: [{ createdAt: { gt: createdAt } }, { createdAt, id: { gt: id } }] },
      orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
      take: limit,
      omit,
    })) as ApiKeyRow[];
  }
}
