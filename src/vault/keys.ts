/** The settings that hold keys, each for one use, so that each is replaced on its own. */
export const KEY_SETTINGS = ['DATA_KEYS', 'FINGERPRINT_KEYS', 'AUDIT_KEYS'] as const;
export type KeySetting = (typeof KEY_SETTINGS)[number];

/** A key of 32 bytes and its id, which every value of the key contains. */
export interface SecretKey {
  id: string;
  key: Buffer;
}

/** Reads `id:base64` pairs as validated by the environment. */
export function parseKeys(pairs: readonly string[]): SecretKey[] {
  return pairs.map((pair) => {
    const colon = pair.indexOf(':');
    return { id: pair.slice(0, colon), key: Buffer.from(pair.slice(colon + 1), 'base64') };
  });
}

/** The keys of every setting. */
export function parseAllKeys(env: Readonly<Record<KeySetting, readonly string[]>>): Record<KeySetting, SecretKey[]> {
  return {
    DATA_KEYS: parseKeys(env.DATA_KEYS),
    FINGERPRINT_KEYS: parseKeys(env.FINGERPRINT_KEYS),
    AUDIT_KEYS: parseKeys(env.AUDIT_KEYS),
  };
}
