import { Global, Logger, Module } from '@nestjs/common';
import { Env } from '../config/env.js';
import { Random } from '../config/random.js';
import { PrismaService, toBytes } from '../database/prisma.service.js';
import { Metrics } from '../http/server/metrics.js';
import { KeyedHashes } from './keyed-hashes.js';
import { parseKeys } from './keys.js';
import { Macs } from './macs.js';
import { SEALED_PLACES } from './sealed-columns.js';
import { UNREADABLE_CAUSES, Vault } from './vault.js';

const purpose = 'fingerprint';

/** The place of the fingerprint key. */
export const FINGERPRINT_PLACE = { table: 'vault_keys', column: 'wrapped', row: purpose };

/** Opens the vault with the data keys of the environment and the fingerprint key of the database, made at the first start. */
async function openVault(env: Env, random: Random, { vaultKey }: PrismaService, metrics: Metrics): Promise<Vault> {
  if (!env.DATA_KEYS) throw new Error('DATA_KEYS is not set; give one as id:base64 (openssl rand -base64 32).');
  const keys = parseKeys(env.DATA_KEYS);
  const wrapping = new Vault(keys, Buffer.alloc(32), random);
  const find = () => vaultKey.findUnique({ where: { purpose } });
  if (!(await find())) {
    const wrapped = toBytes(wrapping.seal(FINGERPRINT_PLACE, random.bytes(32)));
    await vaultKey.createMany({ data: [{ purpose, wrapped }], skipDuplicates: true }); // another process may be first
  }
  const kept = await find();
  if (!kept) throw new Error('The fingerprint key could not be stored; check that the database accepts writes.');
  const fingerprintKey = wrapping.openBytes(FINGERPRINT_PLACE, kept.wrapped);
  const log = new Logger(Vault.name);
  const labels = ['column', 'cause'] as const;
  const known = SEALED_PLACES.flatMap((column) => UNREADABLE_CAUSES.map((cause) => ({ column, cause })));
  const counter = metrics.counter('unreadable_values_total', 'Encrypted values that did not open', labels, known);
  return new Vault(keys, fingerprintKey, random, {
    onUnreadable: ({ table, column, row }, cause, isNew) => {
      counter.inc({ column: `${table}.${column}`, cause });
      if (isNew) log.error({ msg: 'an encrypted value does not open', table, column, row });
    },
  });
}

@Global()
@Module({
  providers: [
    { provide: Vault, inject: [Env, Random, PrismaService, Metrics], useFactory: openVault },
    {
      provide: Macs,
      inject: [Env],
      useFactory: ({ AUDIT_KEYS: keys = [] }: Env) => new Macs(new KeyedHashes(parseKeys(keys))),
    },
  ],
  exports: [Macs, Vault],
})
export class VaultModule {}
