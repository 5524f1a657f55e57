const DAY_MS = 86_400_000;

/** The default lifetime of a key. */
export const LIFETIME_MS = 365 * DAY_MS;

/** How long before its expiry a key is reported. Keys made for at most twice as long are not: their end is near anyway. */
const EXPIRES_SOON_MS = 30 * DAY_MS;

/** How long a key is not used before it is reported. */
const UNUSED_MS = 90 * DAY_MS;

/** Names that the audit log gives to callers without a key. */
const RESERVED_NAMES = ['admin', 'system', 'unknown'];

/** False for a name that a terminal or an auditor would read differently from the stored one. */
export function isKeyName(value: unknown): boolean {
  if (typeof value !== 'string' || !/^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u.test(value)) return false;
  return value.trim() === value && !RESERVED_NAMES.includes(value.normalize('NFKC').trim().toLowerCase());
}

export type KeyWarning = 'altered' | 'expires-soon' | 'unused';

/** True until a key is revoked or expires. */
export const isAlive = (key: Record<'expiresAt' | 'revokedAt', Date | null>, now: Date): boolean =>
  key.revokedAt === null && (key.expiresAt === null || key.expiresAt > now);

/** Lists the warnings about a key. If a key has ended, or a successor replaces it, only its MAC is checked. */
export function warningsOf(
  key: Record<'expiresAt' | 'revokedAt' | 'lastUsedAt', Date | null> & { createdAt: Date; rotatedTo: string | null },
  isGenuine: boolean,
  now: Date,
): KeyWarning[] {
  const altered: KeyWarning[] = isGenuine ? [] : ['altered'];
  if (!isAlive(key, now) || key.rotatedTo !== null) return altered;
  const left = key.expiresAt ? key.expiresAt.getTime() - now.getTime() : Number.POSITIVE_INFINITY;
  const lifetime = (key.expiresAt?.getTime() ?? 0) - key.createdAt.getTime();
  const isEnding = left <= EXPIRES_SOON_MS && lifetime > 2 * EXPIRES_SOON_MS;
  const isUnused = now.getTime() - (key.lastUsedAt ?? key.createdAt).getTime() >= UNUSED_MS;
  return [...altered, ...(isEnding ? ['expires-soon' as const] : []), ...(isUnused ? ['unused' as const] : [])];
}
