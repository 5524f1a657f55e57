import { readFileSync } from 'node:fs';

/** Maximum length of a value from a file. */
const MAX_LENGTH = 64 * 1024;

/** Variables as in `process.env`. */
export type Raw = Record<string, string | undefined>;

/** False for a blank value, too. */
export const isSet = (value: string | undefined): value is string => value !== undefined && value.trim() !== '';

/** True if this process has a setting, also as a file. Unlike `readEnv`, it needs no package. */
export const isGiven = (name: string): boolean => isSet(process.env[name]) || isSet(process.env[`${name}_FILE`]);

/**
 * Reads the settings that variables with `_FILE` at the end of their names take from files, as orchestrators mount secrets.
 * A line break at the end of a value is removed.
 *
 * @returns the settings, and a sentence for each that could not be read; it contains no value
 */
export function withFiles(raw: Raw, names: readonly string[]): { settings: Raw; faults: Map<string, string> } {
  const settings = { ...raw };
  const faults = new Map<string, string>();
  for (const name of names) {
    const file = raw[`${name}_FILE`];
    if (!isSet(file)) continue;
    try {
      if (isSet(settings[name])) faults.set(name, `${name}_FILE must be the only source of ${name}`);
      else settings[name] = checked(readFileSync(file, 'utf8'));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      faults.set(name, `${name}_FILE must name a file that holds the value (${code ?? message})`);
    }
  }
  return { settings, faults };
}

function checked(text: string): string {
  if (text.length > MAX_LENGTH) throw new Error('it is too long');
  if (!isSet(text)) throw new Error('it is empty');
  return text.replace(/\r?\n$/, '');
}
