import { ValidateBy, type ValidationArguments } from 'class-validator';
import { OFF } from './secret-files.js';
import { isPlatformHere } from './setting-rules.js';

/** Characters that a secret must have. */
const SHORTEST_SECRET = 32;

/** Bits that are asked for, as estimated; 32 random hexadecimal digits have 128, and are estimated at 110 or more. */
const LEAST_BITS = 80;

/** Whether a secret is long, and varied enough to be a random one: no repetition, no row of neighbouring characters. */
export function isStrongSecret(secret: string): boolean {
  if (secret.length < SHORTEST_SECRET) return false;
  const codes = [...secret].map((character) => character.codePointAt(0) ?? 0);
  const steps = codes.slice(1).map((code, at) => code - (codes[at] ?? 0));
  return Math.min(noveltyBits(codes), noveltyBits(steps)) >= LEAST_BITS;
}

/** Of each run of three that did not come before, as many bits as tell one of its different values from the others. */
function noveltyBits(values: readonly number[]): number {
  const runs = new Set(values.slice(2).map((value, at) => `${values[at]} ${values[at + 1]} ${value}`));
  return runs.size * Math.log2(new Set(values).size);
}

/** A first key of this service's own API, made by whoever runs it. */
export function IsBootstrapKey(): PropertyDecorator {
  const validate = (value: unknown) => typeof value === 'string' && (value === OFF || isStrongSecret(value));
  const defaultMessage = () =>
    `must hold a first administrator key of at least ${SHORTEST_SECRET} random characters (openssl rand -hex 24), or off`;
  return ValidateBy({ name: 'isBootstrapKey', validator: { validate, defaultMessage } });
}

/** Secrets that the platform gave; those of a platform on this machine, such as the simulator, protect nothing. */
export function AreStrongSecrets(): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) =>
    isPlatformHere(args) || [value].flat().every((secret) => typeof secret !== 'string' || isStrongSecret(secret));
  const defaultMessage = () =>
    `must hold secrets of at least ${SHORTEST_SECRET} random characters; have the platform give you a stronger one`;
  return ValidateBy({ name: 'areStrongSecrets', validator: { validate, defaultMessage } });
}
