import pg from 'pg';
import { parseUrl } from '../../config/urls.js';

/** Timeout for a new connection, and for its settings. */
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Settings of every connection, so that no default of a role or database can change an outcome: the rate limit needs
 * READ COMMITTED, for example. A pool sets its own timeouts; others would cut off long statements and waits for locks.
 */
const SESSION_SETTINGS = {
  default_transaction_isolation: 'read committed',
  TimeZone: 'UTC',
  DateStyle: 'ISO,MDY',
  IntervalStyle: 'postgres',
  extra_float_digits: '1',
  bytea_output: 'hex',
  standard_conforming_strings: 'on',
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  transaction_timeout: '0',
  jit: 'off', // compiling costs more than statements as short as these
};

/**
 * Sets settings by name, except those that this version of PostgreSQL lacks. A statement, because a pooler such as PgBouncer
 * rejects or drops what a client asks for when it connects.
 */
export const SET_SESSION = `
  SELECT set_config(name, value, false) FROM json_each_text($1) AS setting (name, value)
  WHERE current_setting(name, true) IS NOT NULL`;

/** The settings in the options of a URL: `?options=-c name=value`. */
function settingsOf(url: string): Record<string, string> {
  const options = parseUrl(url)?.searchParams.get('options') ?? '';
  const words = options.match(/(?:\\.|[^\s\\])+/g) ?? [];
  const settings = words.map((word) =>
    word
      .replace(/^(-c|--)/, '')
      .replace(/\\(.)/g, '$1')
      .split('='),
  );
  return Object.fromEntries(
    settings.flatMap(([name = '', ...value]) =>
      value.length > 0 ? [[name.replaceAll('-', '_'), value.join('=')]] : [],
    ),
  );
}

/** A URL whose connections use one schema. */
export function inSchema(url: string, schema: string): string {
  const address = new URL(url);
  const path = pg.escapeIdentifier(schema).replace(/[\\\s]/g, '\\$&');
  const options = `${address.searchParams.get('options') ?? ''} -c search_path=${path}`;
  address.searchParams.set('options', options.trim());
  return address.toString();
}

/** The schema of a URL: that of `inSchema`, otherwise public. */
export function schemaOf(url: string): string {
  const [, quoted, plain] = /^\s*(?:"((?:[^"]|"")*)"|([^\s,]+))/.exec(settingsOf(url).search_path ?? 'public') ?? [];
  return quoted?.replaceAll('""', '"') ?? plain ?? 'public';
}

/**
 * The settings for connecting a pool or client to a URL. A pool runs `onConnect` itself; for a client, run it after
 * `connect()`. Options in the URL win over `SESSION_SETTINGS`, because an operator wrote them for this service.
 *
 * @param settings win over both
 */
export function sessionConfig(url = '', settings: Record<string, string> = {}) {
  const own = settingsOf(url);
  const address = parseUrl(url);
  address?.searchParams.delete('options');
  const values = [JSON.stringify({ ...SESSION_SETTINGS, ...own, ...settings })];
  return {
    connectionString: Object.keys(own).length > 0 ? address?.toString() : url,
    async onConnect(client: pg.ClientBase): Promise<void> {
      // node-postgres reads the timeout of one statement; its types lack it.
      const statement = { text: SET_SESSION, values, query_timeout: CONNECT_TIMEOUT_MS };
      await client.query(statement);
    },
  };
}

/** Runs work on a dedicated connection outside the pools, for commands and at start. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const { onConnect, connectionString } = sessionConfig(url);
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2 * CONNECT_TIMEOUT_MS });
  // Without a listener, an error between two statements would crash the process.
  let loss: Error | undefined;
  client.on('error', (error) => {
    loss ??= error;
  });
  await client.connect();
  const failed = (error: unknown) => {
    throw loss ?? error;
  };
  return onConnect(client)
    .then(() => work(client))
    .catch(failed)
    .finally(() => client.end());
}
