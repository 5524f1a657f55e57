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
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OIDC_CLIENT_SECRET',
];

/** What ADMIN_API_KEY holds once it is no longer taken. */
export const OFF = 'off';

/** Bytes; a file that is longer holds no secret. */
const LONGEST = 64 * 1024;

type Raw = Record<string, unknown>;

/** Why a secret's file is not taken. */
interface SecretFault {
  readonly name: string;
  readonly fault: string;
}

const isSet = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

/**
 * Puts the content of files in the place of the variables that name them, without the line break at its end.
 *
 * @returns the settings, and one fault for each file that can't be taken; faults name no value
 */
export function withSecretFiles(raw: Raw, secrets = SECRETS): { settings: Raw; faults: SecretFault[] } {
  const settings = { ...raw };
  const faults = secrets.flatMap((secret) => {
    const name = `${secret}_FILE`;
    const file = raw[name];
    if (!isSet(file)) return [];
    if (isSet(raw[secret])) return [{ name, fault: `must not be set beside ${secret}: keep one of the two` }];
    try {
      settings[secret] = secretIn(file);
      return [];
    } catch (error) {
      return [{ name, fault: `must name a file that holds the secret (${(error as Error).message})` }];
    }
  });
  return { settings, faults };
}

/** @throws {Error} whose message is the short reason */
function secretIn(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error((error as NodeJS.ErrnoException).code ?? 'it can not be read');
  }
  if (text.length > LONGEST) throw new Error('it is too long');
  if (!isSet(text)) throw new Error('it is empty');
  return text.replace(/\r?\n$/, '');
}
