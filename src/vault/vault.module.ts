import { Global, Module } from '@nestjs/common';
import { Env } from '../config/env.js';
import { Random } from '../config/random.js';
import { PrismaService } from '../database/prisma.service.js';
import { parseDataKeys } from './data-keys.js';
import { FingerprintKeyRepository } from './fingerprint-key.repository.js';
import { Vault } from './vault.js';

const PURPOSE = 'fingerprint';

/** Where the fingerprint key stands. */
export const FINGERPRINT_PLACE = { table: 'vault_keys', column: 'wrapped', row: PURPOSE };

/** Opens the vault: data keys from the environment, the fingerprint key from the database, made at the first start. */
export async function openVault(env: Env, random: Random, prisma: PrismaService): Promise<Vault> {
  if (!env.DATA_KEYS) throw new Error('DATA_KEYS is not set; give one as id:base64 (openssl rand -base64 32).');
  const keys = parseDataKeys(env.DATA_KEYS);
  const wrapping = new Vault(keys, Buffer.alloc(32), random);
  const repository = new FingerprintKeyRepository(prisma);
  if (!(await repository.find(PURPOSE)))
    await repository.keep(PURPOSE, wrapping.seal(FINGERPRINT_PLACE, random.bytes(32)));
  const wrapped = await repository.find(PURPOSE);
  if (!wrapped) throw new Error('The fingerprint key could not be stored; check that the database accepts writes.');
  return new Vault(keys, wrapping.openBytes(FINGERPRINT_PLACE, wrapped), random);
}

@Global()
@Module({
  providers: [{ provide: Vault, inject: [Env, Random, PrismaService], useFactory: openVault }],
  exports: [Vault],
})
export class VaultModule {}
