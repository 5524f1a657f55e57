import { Global, Logger, Module } from '@nestjs/common';
import { Env } from '../config/env.js';
import { Random } from '../config/random.js';
import { PrismaService } from '../database/prisma.service.js';
import { Metrics } from '../monitoring/metrics.js';
import { Fingerprints } from './fingerprints.js';
import { registerKeys, type ServiceKeys } from './key-uses.js';
import { KeyedHashes } from './keyed-hashes.js';
import { parseAllKeys } from './keys.js';
import { Macs } from './macs.js';
import { SEALED_PLACES } from './sealed-columns.js';
import { UNREADABLE_CAUSES, Vault } from './vault.js';

/** The token of the process's keys, which are registered. */
const KEYS = Symbol('keys');

async function openKeys(env: Env, prisma: PrismaService): Promise<ServiceKeys> {
  const keys = parseAllKeys(env);
  await registerKeys(prisma, keys);
  return keys;
}

function openVault(keys: ServiceKeys, random: Random, metrics: Metrics): Vault {
  const log = new Logger(Vault.name);
  const labels = ['column', 'cause'] as const;
  const known = SEALED_PLACES.flatMap((column) => UNREADABLE_CAUSES.map((cause) => ({ column, cause })));
  const counter = metrics.counter(
    'unreadable_values_total',
    'Encrypted values that could not be decrypted',
    labels,
    known,
  );
  return new Vault(keys.DATA_KEYS, random, {
    onUnreadable: ({ table, column, row }, cause, isNew) => {
      counter.inc({ column: `${table}.${column}`, cause });
      if (isNew) log.error({ msg: 'an encrypted value cannot be decrypted', table, column, row });
    },
  });
}

@Global()
@Module({
  providers: [
    { provide: KEYS, inject: [Env, PrismaService], useFactory: openKeys },
    { provide: Vault, inject: [KEYS, Random, Metrics], useFactory: openVault },
    {
      provide: Fingerprints,
      inject: [KEYS],
      useFactory: (keys: ServiceKeys) => new Fingerprints(keys.FINGERPRINT_KEYS),
    },
    { provide: Macs, inject: [KEYS], useFactory: (keys: ServiceKeys) => new Macs(new KeyedHashes(keys.AUDIT_KEYS)) },
  ],
  exports: [Fingerprints, Macs, Vault],
})
export class VaultModule {}
