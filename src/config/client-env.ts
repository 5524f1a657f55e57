import { OFF, withSecretFiles } from './secret-files.js';

const KEYS = ['NOTEBRIDGE_KEY', 'ADMIN_API_KEY'];

/** What a command line that speaks to the service reads from its environment; none of it is required. */
export function readClientEnv(raw: Record<string, string | undefined> = process.env) {
  const { settings, faults } = withSecretFiles(raw, KEYS);
  const [own, administrator] = KEYS.map((name) => String(settings[name] ?? '').trim() || undefined);
  const [fault] = own ? [] : faults;
  return {
    /** Address of the service, such as http://127.0.0.1:3000. */
    url: raw.NOTEBRIDGE_URL?.trim() || undefined,
    key: own ?? (administrator === OFF ? undefined : administrator),
    /** The id of the person who uses the command line, for the audit log. */
    onBehalfOf: raw.NOTEBRIDGE_ON_BEHALF_OF?.trim() || undefined,
    /** Why there is no key, when the file that should hold it is at fault. */
    keyFault: fault && `${fault.name} ${fault.fault}.`,
    /** Whether the key may go to another host without encryption, such as within a network of containers. */
    mayBeInsecure: raw.NOTEBRIDGE_INSECURE_HTTP?.trim() === 'true',
    /** Where a demo of this clone left its address and key. */
    dataDir: raw.DATA_DIR?.trim() || '.data',
    /** Whether the service's own settings, or some of them, are here too. */
    hasService: ['PLATFORM_BASE_URL', 'DATABASE_URL', 'DATABASE_URL_FILE'].some((name) => raw[name]?.trim()),
  };
}

export type ClientEnv = ReturnType<typeof readClientEnv>;

/** Reads the settings that a check of the contract file needs; none of them is required. */
export function readContractEnv(raw: Record<string, string | undefined> = process.env) {
  return {
    file: raw.PLATFORM_CONTRACT?.trim() || undefined,
    PLATFORM_PARTNER_DOMAIN: raw.PLATFORM_PARTNER_DOMAIN?.trim() || undefined,
  };
}
