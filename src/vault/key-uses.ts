import { type Tx, toBytes } from '../database/prisma.service.js';
import { codeOf } from '../errors/error-code.js';
import { KeyedHashes } from './keyed-hashes.js';
import { KEY_SETTINGS, type KeySetting, type SecretKey } from './keys.js';

/** The keys of a process, by their setting. */
export type ServiceKeys = Record<KeySetting, SecretKey[]>;

/** The keys that stored values need. The hash shows whether another key has the id of one. */
export type KeyUses = Pick<Tx, 'keyUse'>;

type KeyUse = Awaited<ReturnType<typeof readUses>>[number];

const UNDEFINED_TABLE = '42P01';

/**
 * Registers the first keys of a process, with which it makes values, before it makes any.
 *
 * @throws {Error} naming setting and id, if a registered key is missing or is another key
 */
export async function registerKeys(db: KeyUses, keys: ServiceKeys): Promise<void> {
  const registered = await readUses(db);
  refuse(registered, keys);
  const data = KEY_SETTINGS.flatMap((setting) =>
    keys[setting].slice(0, 1).map((key) => ({ setting, id: key.id, checkHash: toBytes(hashOf(setting, key)) })),
  ).filter(({ setting, id }) => !registered.some((use) => use.setting === setting && use.id === id));
  if (data.length === 0) return;
  await db.keyUse.createMany({ data, skipDuplicates: true });
  refuse(await readUses(db), keys); // another process may have registered another key with the same id
}

/** The faults of keys, each as a sentence; undefined if the service never started on this database. */
export async function keyFaults(db: KeyUses, keys: ServiceKeys): Promise<string[] | undefined> {
  const uses = await readUses(db).catch((error: unknown) => {
    if (codeOf(error) === UNDEFINED_TABLE) return [];
    throw error;
  });
  return uses.length === 0 ? undefined : faultsOf(uses, keys);
}

/** Forgets keys that no stored value needs. */
export async function forgetKeys(db: KeyUses, setting: KeySetting, ids: string[]): Promise<void> {
  await db.keyUse.deleteMany({ where: { setting, id: { in: ids } } });
}

function readUses(db: KeyUses) {
  return db.keyUse.findMany({ orderBy: [{ setting: 'asc' }, { id: 'asc' }] });
}

function refuse(uses: readonly KeyUse[], keys: ServiceKeys): void {
  const [fault] = faultsOf(uses, keys);
  if (fault) throw new Error(fault);
}

function faultsOf(uses: readonly KeyUse[], keys: ServiceKeys): string[] {
  return uses.flatMap(({ setting, id, checkHash }) => {
    const key = keys[setting as KeySetting].find((one) => one.id === id);
    const remedy = setting === 'FINGERPRINT_KEYS' ? 'Set it to this key alone.' : 'Add it after the first key.';
    if (!key) return `${setting} lacks the key ${id}, which stored data needs. ${remedy}`;
    if (hashOf(setting, key).equals(checkHash)) return [];
    return `The key ${id} in ${setting} is not the key ${id} that stored data needs. Restore that key, and give a new key another id.`;
  });
}

function hashOf(setting: string, key: SecretKey): Buffer {
  return new KeyedHashes([key]).of('key-use', setting);
}
