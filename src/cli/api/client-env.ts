import { type Raw, withFiles } from '../../config/secret-files.js';
import { OFF } from '../../config/secret-strength.js';

const KEYS = ['NOTEBRIDGE_KEY', 'ADMIN_API_KEY'];

/** Reads the environment of a command that does not need all settings of the service. All of it is optional. */
export function readClientEnv(raw: Raw = process.env) {
  const { settings, faults } = withFiles(raw, KEYS);
  const textOf = (name: string) => settings[name]?.trim() || undefined;
  const [own, administrator] = KEYS.map(textOf);
  const [keyFault] = own ? [] : faults.values();
  return {
    /** URL of the service, such as http://127.0.0.1:3000. */
    url: textOf('NOTEBRIDGE_URL'),
    key: own ?? (administrator === OFF ? undefined : administrator),
    /** The id of the person who uses the command line, for the audit log. */
    onBehalfOf: textOf('NOTEBRIDGE_ON_BEHALF_OF'),
    /** Why the file of the key cannot be used. */
    keyFault: keyFault && `${keyFault}.`,
    /** True if the key may be sent to another host without TLS, such as in a network of containers. */
    mayBeInsecure: textOf('NOTEBRIDGE_INSECURE_HTTP') === 'true',
    /** The folder in which this clone's demo stores its URL and key. */
    dataDir: textOf('DATA_DIR') ?? '.data',
    /** The contract file, and the setting that its check needs. */
    contract: textOf('PLATFORM_CONTRACT'),
    PLATFORM_PARTNER_DOMAIN: textOf('PLATFORM_PARTNER_DOMAIN'),
    /** True if this environment has settings of the service. */
    hasService: ['PLATFORM_BASE_URL', 'DATABASE_URL', 'DATABASE_URL_FILE'].some((name) => textOf(name)),
  };
}

export type ClientEnv = ReturnType<typeof readClientEnv>;
