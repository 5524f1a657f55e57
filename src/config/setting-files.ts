import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Maximum length of a value from a file or a command. */
const MAX_LENGTH = 64 * 1024;

const COMMAND_TIMEOUT_MS = 30_000;

/** Variables as in `process.env`. */
export type Raw = Record<string, string | undefined>;

/** False for a blank value, too. */
export const isSet = (value: string | undefined): value is string => value !== undefined && value.trim() !== '';

/**
 * Reads the settings that variables with `_FILE` at the end of their names take from files, as orchestrators mount secrets,
 * and keys that `_COMMAND` takes from a command, such as one that asks a key management service. A line break at the end of
 * a value is removed.
 *
 * @returns the settings, and a sentence for each that could not be read; it contains no value
 */
export function withFiles(raw: Raw, names: readonly string[]): { settings: Raw; faults: Map<string, string> } {
  const settings = { ...raw };
  const faults = new Map<string, string>();
  for (const name of names) {
    for (const { suffix, read, what } of sourcesOf(name)) {
      const source = raw[name + suffix];
      if (!isSet(source)) continue;
      try {
        if (isSet(settings[name])) faults.set(name, `${name}${suffix} must be the only source of ${name}`);
        else settings[name] = checked(read(source));
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        faults.set(name, `${name}${suffix} must name ${what} (${code ?? message})`);
      }
    }
  }
  return { settings, faults };
}

const sourcesOf = (name: string) => [
  { suffix: '_FILE', read: (file: string) => readFileSync(file, 'utf8'), what: 'a file that holds the value' },
  ...(name.endsWith('_KEYS') ? [{ suffix: '_COMMAND', read: outputOf, what: 'a command that prints the keys' }] : []),
];

/** The output of a shell command. @throws {Error} whose message is the short reason, and contains no part of the output */
function outputOf(command: string): string {
  const { stdout, status, error } = spawnSync('sh', ['-c', command], {
    ...{ encoding: 'utf8', timeout: COMMAND_TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: MAX_LENGTH },
    stdio: ['ignore', 'pipe', 'ignore'], // its errors may contain a key
  });
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ETIMEDOUT') throw new Error(`it took more than ${COMMAND_TIMEOUT_MS / 1_000} s`);
  if (code === 'ENOBUFS') throw new Error('its output is too long');
  if (status !== 0) throw new Error(status === null ? 'it could not run' : `it ended with ${status}`);
  return stdout;
}

function checked(text: string): string {
  if (text.length > MAX_LENGTH) throw new Error('it is too long');
  if (!isSet(text)) throw new Error('it is empty');
  return text.replace(/\r?\n$/, '');
}
