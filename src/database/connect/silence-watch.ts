import pg from 'pg';

/** The server processes that execute a statement, without those that wait for a slow client. */
const WORKING_PIDS = `
  SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[])
    AND state = 'active' AND wait_event IS DISTINCT FROM 'ClientWrite'`;

/** Ends server processes of lost connections, with their locks. A pid may belong to another client by now. */
const END_LOST = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid = ANY ($1::int[]) AND usename = current_user AND application_name = current_setting('application_name')
    AND state <> 'active'`;

/** The open statement of a connection, which pg keeps private; undefined for a stream, whose reader may be slow. */
function openStatement(client: pg.Client): pg.Query | undefined {
  const active: unknown = Reflect.get(client, '_activeQuery');
  return active instanceof pg.Query ? active : undefined;
}

/** The server process of a connection. */
const pidOf = (client: pg.Client) => Number(Reflect.get(client, 'processID'));

/**
 * Finds connections that were lost during a long statement, by asking the server over another connection whether it still
 * executes the statement. A timeout would have to be as long as the longest statement.
 */
export class SilenceWatch {
  private readonly clients = new Set<pg.Client>();
  /** The open statements that the server did not execute at the last look. */
  private suspects = new Set<pg.Query>();

  /** @param sql other connections to the server, with a short timeout */
  constructor(private readonly sql: Pick<pg.Pool, 'query'>) {}

  follow(client: pg.Client): void {
    this.clients.add(client);
    client.once('end', () => this.clients.delete(client));
  }

  /** Looks once. Cuts a connection only at the second look, because an answer may be on its way. */
  async look(): Promise<void> {
    const waiting = [...this.clients].flatMap((client) => {
      const statement = openStatement(client);
      return statement ? { client, statement, pid: pidOf(client) } : [];
    });
    if (waiting.length === 0) return this.suspects.clear();
    const { rows } = await this.sql.query<{ pid: number }>(WORKING_PIDS, [waiting.map(({ pid }) => pid)]);
    const atWork = new Set(rows.map(({ pid }) => pid));
    const silent = waiting.filter(
      ({ client, statement, pid }) => !atWork.has(pid) && openStatement(client) === statement,
    );
    const cut = silent.filter(({ statement }) => this.suspects.has(statement));
    this.suspects = new Set(silent.map(({ statement }) => statement));
    for (const { client } of cut) client.connection.stream.destroy();
    if (cut.length > 0) await this.sql.query(END_LOST, [cut.map(({ pid }) => pid)]);
  }
}
