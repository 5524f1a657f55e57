import { Global, Module } from '@nestjs/common';
import { Env } from '../config/env.js';
import { Random } from '../config/random.js';
import { PrismaService, toBytes } from '../database/prisma.service.js';
import { parseDataKeys } from './data-keys.js';
import { Vault } from './vault.js';

const purpose = 'fingerprint';

/** Where the fingerprint key stands. */
export const FINGERPRINT_PLACE = { table: 'vault_keys', column: 'wrapped', row: purpose };

/** Opens the vault: data keys from the environment, the fingerprint key from the database, made at the first start. */
async function openVault(env: Env, random: Random, { vaultKey }: PrismaService): Promise<Vault> {
  if (!env.DATA_KEYS) throw new Error('DATA_KEYS is not set; give one as id:base64 (openssl rand -base64 32).');
  const keys = parseDataKeys(env.DATA_KEYS);
  const wrapping = new Vault(keys, Buffer.alloc(32), random);
  const find = () => vaultKey.findUnique({ where: { purpose } });
  if (!(await find())) {
    const wrapped = toBytes(wrapping.seal(FINGERPRINT_PLACE, random.bytes(32)));
    await vaultKey.createMany({ data: [{ purpose, wrapped }], skipDuplicates: true }); // another process may be first
  }
  const kept = await find();
  if (!kept) throw new Error('The fingerprint key could not be stored; check that the database accepts writes.');
  return new Vault(keys, wrapping.openBytes(FINGERPRINT_PLACE, kept.wrapped), random);
}

@Global()
@Module({
  providers: [{ provide: Vault, inject: [Env, Random, PrismaService], useFactory: openVault }],
  exports: [Vault],
})
export class VaultModule {}
