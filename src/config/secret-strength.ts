/** The value of ADMIN_API_KEY that disables it. */
export const OFF = 'off';

/** Minimum length of a secret, in characters. */
export const MIN_LENGTH = 32;

/** Minimum of the estimated bits; 32 random hexadecimal digits have 128, and are estimated at 110 or more. */
const MIN_BITS = 80;

/** True if a secret is long and varied enough to be random: no repetitions, no sequences of neighbouring characters. */
export function isStrongSecret(secret: string): boolean {
  if (secret.length < MIN_LENGTH) return false;
  const codes = [...secret].map((character) => character.codePointAt(0) ?? 0);
  const steps = codes.slice(1).map((code, at) => code - (codes[at] ?? 0));
  return Math.min(noveltyBits(codes), noveltyBits(steps)) >= MIN_BITS;
}

/** The number of different runs of three values, times the bits of one value. */
function noveltyBits(values: readonly number[]): number {
  const runs = new Set(values.slice(2).map((value, at) => `${values[at]} ${values[at + 1]} ${value}`));
  return runs.size * Math.log2(new Set(values).size);
}
