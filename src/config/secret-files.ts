import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** The service's settings that may stand in a file instead, named by a variable of the same name and `_FILE`, as orchestrators mount secrets. */
const SECRETS = [
  'PLATFORM_API_KEY',
  'PLATFORM_WEBHOOK_SECRET',
  'ADMIN_API_KEY',
  'DATA_KEYS',
  'FINGERPRINT_KEYS',
  'AUDIT_KEYS',
  'DATABASE_URL',
  'DATABASE_OWNER_URL',
  'REDIS_URL',
  'HTTPS_PROXY',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OIDC_CLIENT_SECRET',
];

/** What ADMIN_API_KEY holds once it is no longer taken. */
export const OFF = 'off';

/** Bytes; a file that is longer holds no secret. */
const LONGEST = 64 * 1024;

/** Timeout for a command. */
const COMMAND_TIMEOUT_MS = 30_000;

type Raw = Record<string, unknown>;

/** Why a source of a secret is not accepted. */
interface SecretFault {
  /** The variable that names the source. */
  readonly name: string;
  readonly secret: string;
  readonly fault: string;
}

const isSet = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

/**
 * Replaces variables that name files, or for keys commands, by their content or output, without the line break at its
 * end.
 *
 * @returns the settings, and one fault for each source that is not accepted; faults contain no value
 */
export function withSecretFiles(raw: Raw, secrets = SECRETS): { settings: Raw; faults: SecretFault[] } {
  const settings = { ...raw };
  const faults: SecretFault[] = [];
  for (const secret of secrets) {
    for (const { suffix, read, what } of sourcesOf(secret)) {
      const name = `${secret}_${suffix}`;
      const source = raw[name];
      if (!isSet(source)) continue;
      try {
        if (isSet(settings[secret])) faults.push({ name, secret, fault: `must be the only source of ${secret}` });
        else settings[secret] = textOf(read(source));
      } catch (error) {
        faults.push({ name, secret, fault: `must name ${what} (${(error as Error).message})` });
      }
    }
  }
  return { settings, faults };
}

/** Keys may come from a command, too, such as one that asks a key management service. */
const sourcesOf = (secret: string) => [
  { suffix: 'FILE', read: contentOf, what: 'a file that holds the secret' },
  ...(secret.endsWith('_KEYS') ? [{ suffix: 'COMMAND', read: outputOf, what: 'a command that prints the keys' }] : []),
];

/** @throws {Error} whose message is the short reason */
function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error((error as NodeJS.ErrnoException).code ?? 'it can not be read');
  }
}

/** The output of a shell command. @throws {Error} whose message is the short reason, and contains no part of the output */
function outputOf(command: string): string {
  const { stdout, status, error } = spawnSync('sh', ['-c', command], {
    ...{ encoding: 'utf8', timeout: COMMAND_TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: LONGEST },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ETIMEDOUT') throw new Error(`it took more than ${COMMAND_TIMEOUT_MS / 1_000} s`);
  if (code === 'ENOBUFS') throw new Error('its output is too long');
  if (status !== 0) throw new Error(status === null ? 'it could not run' : `it ended with ${status}`);
  return stdout;
}

/** @throws {Error} whose message is the short reason */
function textOf(text: string): string {
  if (text.length > LONGEST) throw new Error('it is too long');
  if (!isSet(text)) throw new Error('it is empty');
  return text.replace(/\r?\n$/, '');
}
