/** What a command line that speaks to the service reads from its environment; none of it is required. */
export function readClientEnv(raw: Record<string, string | undefined> = process.env) {
  return {
    /** Address of the service, such as http://127.0.0.1:3000. */
    url: raw.NOTEBRIDGE_URL?.trim() || undefined,
    key: raw.NOTEBRIDGE_KEY?.trim() || raw.ADMIN_API_KEY?.trim() || undefined,
    /** Where a demo of this clone left its address and key. */
    dataDir: raw.DATA_DIR?.trim() || '.data',
    /** Whether the service's own settings are here, too. */
    hasService: Boolean(raw.PLATFORM_BASE_URL?.trim()),
  };
}

export type ClientEnv = ReturnType<typeof readClientEnv>;
