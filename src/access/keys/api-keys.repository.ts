import { Injectable } from '@nestjs/common';
import { after, type Place } from '../../database/paging.js';
import { PrismaService, type Tx, toBytes } from '../../database/prisma.service.js';
import type { ApiKey } from '../../generated/prisma/client.js';
import { Problem } from '../../http/problem/problem.js';
import { Macs } from '../../vault/macs.js';
import { GrantTable, type Timed } from '../identity/grants.js';

export type { ApiKey };

/** What the MAC covers: all but the use of the key. */
type KeyGrant = Omit<ApiKey, 'lastUsedAt' | 'mac'>;

export const API_KEY_GRANTS = new GrantTable<KeyGrant>('api_keys', {
  ...{ id: 'id', name: 'name', prefix: 'prefix', hash: 'hash', scopes: 'scopes' },
  ...{ createdAt: 'created_at', expiresAt: 'expires_at', revokedAt: 'revoked_at', rotatedTo: 'rotated_to' },
});

const LAST_USE = 'last_used_at AS "lastUsedAt",';

/** The stored keys. Each write but that of a use signs the row. */
@Injectable()
export class ApiKeysRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly macs: Macs,
  ) {}

  /** False for a row that this service did not write as it is: it grants nothing. */
  isGenuine(row: ApiKey): boolean {
    return API_KEY_GRANTS.isGenuine(this.macs, row);
  }

  /** The key with this SHA-256. */
  async byHash(hash: Uint8Array): Promise<Timed<ApiKey> | undefined> {
    return (await API_KEY_GRANTS.read<ApiKey>(this.prisma, 'hash = $1', toBytes(hash), LAST_USE))[0];
  }

  /** Those keys that exist. */
  byIds(ids: string[]): Promise<Timed<ApiKey>[]> {
    return API_KEY_GRANTS.read(this.prisma, 'id = ANY ($1::uuid[])', ids, LAST_USE);
  }

  /** Keys, oldest first. @param place creation time and id of the key before the first one */
  list(take?: number, place?: Place): Promise<ApiKey[]> {
    const where = place ? after('createdAt', ...place) : {};
    const orderBy = [{ createdAt: 'asc' as const }, { id: 'asc' as const }];
    return this.prisma.apiKey.findMany({ where, orderBy, ...(take !== undefined && { take }) });
  }

  /** Locks a key. @returns it with the database's time @throws {Problem} 404 `unknown-api-key` */
  async lock(tx: Tx, id: string): Promise<{ row: ApiKey; now: Date }> {
    const [locked] = await tx.$queryRaw<{ now: Date }[]>`
      SELECT clock_timestamp() AS now FROM api_keys WHERE id = ${id}::uuid FOR UPDATE`;
    if (!locked) throw new Problem('unknown-api-key', 'No key has this id. GET /v1/api-keys lists them.');
    return { ...locked, row: await tx.apiKey.findUniqueOrThrow({ where: { id } }) };
  }

  /** Stores a new key. */
  create(tx: Tx, grant: KeyGrant): Promise<ApiKey> {
    return tx.apiKey.create({ data: { ...grant, mac: API_KEY_GRANTS.macOf(this.macs, grant) } });
  }

  /** Changes a locked key. */
  async change(tx: Tx, old: ApiKey, changes: Partial<KeyGrant>): Promise<void> {
    const mac = API_KEY_GRANTS.macOf(this.macs, { ...old, ...changes });
    await tx.apiKey.update({ where: { id: old.id }, data: { ...changes, mac } });
  }

  /** Stores a use, unless one since `staleBefore` is stored. */
  async noteUse(id: string, now: Date, staleBefore: Date): Promise<void> {
    const isStale = [{ lastUsedAt: null }, { lastUsedAt: { lt: staleBefore } }];
    await this.prisma.apiKey.updateMany({ where: { id, OR: isStale }, data: { lastUsedAt: now } });
  }
}
