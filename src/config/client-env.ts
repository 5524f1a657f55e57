/** What the command line reads from its environment; none of it is required. */
export interface ClientEnv {
  /** Address of the service, such as http://127.0.0.1:3000. */
  url: string | undefined;
  key: string | undefined;
  /** Where a demo of this clone left its address and key. */
  dataDir: string;
  /** Whether the service's own settings are here, too. */
  hasService: boolean;
}

/**
 * Reads the environment of a command line that speaks to the service.
 *
 * @param raw usually `process.env`
 */
export function readClientEnv(raw: Record<string, string | undefined> = process.env): ClientEnv {
  return {
    url: raw.NOTEBRIDGE_URL?.trim() || undefined,
    key: raw.NOTEBRIDGE_KEY?.trim() || raw.ADMIN_API_KEY?.trim() || undefined,
    dataDir: raw.DATA_DIR?.trim() || '.data',
    hasService: Boolean(raw.PLATFORM_BASE_URL?.trim()),
  };
}
