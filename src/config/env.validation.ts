import 'reflect-metadata';
import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, type ValidationError, validateSync } from 'class-validator';
import { closest, distance } from 'fastest-levenshtein';
import { Env } from './env.js';
import { isSet, type Raw, withFiles } from './secret-files.js';

/** The name of every setting, in the order of `Env`: each has a decorator of class-validator. */
export const SETTINGS: readonly string[] = [
  ...new Set(
    getMetadataStorage()
      .getTargetValidationMetadatas(Env, '', true, false)
      .map(({ propertyName }) => propertyName),
  ),
];

/**
 * Reads and validates an environment.
 *
 * @param raw usually `process.env`; unknown variables are ignored, blank ones are not set
 * @throws {Error} whose message lists every faulty variable and what it must be; never a value
 */
export function validateEnv(raw: Raw): Env {
  const proxies = { HTTPS_PROXY: raw.https_proxy, NO_PROXY: raw.no_proxy };
  const { settings, faults } = withFiles({ ...proxies, ...raw }, SETTINGS);
  const given = Object.fromEntries(
    SETTINGS.filter((name) => isSet(settings[name])).map((name) => [name, settings[name]]),
  );
  const env = plainToInstance(Env, given, { exposeDefaultValues: true });
  const broken = new Map(validateSync(env).map((error) => [error.property, wordsOf(error)]));
  const lines = SETTINGS.flatMap((name) => {
    const [fault, rules] = [faults.get(name), broken.get(name)];
    if (fault !== undefined) return `  ${fault}`;
    if (rules === undefined) return [];
    return `  ${name} ${name in given ? rules.join('; ') : `is not set: it ${rules[0]}`}`;
  });
  if (lines.length === 0) return env;
  const advice = misspellings(raw).map((sentence) => `  ${sentence}`);
  throw new Error(
    `The environment is not usable; fix these settings (see .env.example):\n${[...lines, ...advice].join('\n')}`,
  );
}

/** In the order of the decorators: class-validator lists the last one first, but `IsDefined` before all others. */
function wordsOf({ constraints: { isDefined, ...others } = {} }: ValidationError): string[] {
  return [...new Set([...(isDefined ? [isDefined] : []), ...Object.values(others).reverse()])];
}

/** Standard variables whose names are close to a setting's. */
const NO_MISSPELLINGS = ['HTTP_PROXY'];

/** Letters that may differ in a misspelling. Two that are swapped are two, and in a short name two make another word. */
const mayDiffer = (name: string) => (name.length < 8 ? 1 : 2);

/** @returns a sentence for each variable that looks like a misspelled setting, which would otherwise be ignored */
export function misspellings(raw: Raw): string[] {
  return Object.keys(raw)
    .filter((name) => isSet(raw[name]) && /^[A-Z][A-Z_]{4,63}$/.test(name))
    .flatMap((name) => {
      const bare = name.replace(/_FILE$/, '');
      if (SETTINGS.includes(bare) || NO_MISSPELLINGS.includes(name)) return [];
      const near = closest(bare, SETTINGS);
      if (distance(near, bare) > mayDiffer(bare)) return [];
      return `${name} is not a setting and is ignored. Did you mean ${near}?`;
    });
}

/** The environment of this process. @throws {Error} as `validateEnv` */
export const readEnv = (): Env => validateEnv(process.env);

/** {@link misspellings} of this process. */
export const misspelledSettings = (): string[] => misspellings(process.env);
