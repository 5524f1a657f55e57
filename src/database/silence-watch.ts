import pg from 'pg';

/** A connection that knows for which statement it waits. */
export class WatchedClient extends pg.Client {
  private asked = 0;
  private answered = 0;

  /** The number of the statement that has no answer yet; undefined when none is open. */
  get waitsFor(): number | undefined {
    return this.asked > this.answered ? this.asked : undefined;
  }

  /** The process of the server behind it. */
  get pid(): number {
    return Number(Reflect.get(this, 'processID'));
  }

  override query(...given: unknown[]): never {
    this.asked += 1;
    let isOpen = true;
    const answered = () => {
      if (isOpen) this.answered += 1;
      isOpen = false;
    };
    const callback = given.at(-1);
    if (typeof callback === 'function') {
      given[given.length - 1] = (...result: unknown[]) => {
        answered();
        return callback(...result);
      };
    }
    const result: unknown = Reflect.apply(super.query, this, given);
    if (result instanceof Promise) result.then(answered, answered);
    // A stream, whose pace is its reader's.
    else if (typeof callback !== 'function') answered();
    return result as never;
  }
}

/** How the server sees one of its processes. */
interface Backend {
  pid: number;
  /** It works on a statement, and is not held up by a client that takes nothing. */
  isAtWork: boolean;
}

const BACKENDS = `
  SELECT pid, state = 'active' AND wait_event IS DISTINCT FROM 'ClientWrite' AS "isAtWork"
  FROM pg_stat_activity WHERE pid = ANY ($1::int[])`;

/** Ends what a connection left behind on the server, with its locks; pids may be used again, by other clients. */
const END = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid = ANY ($1::int[]) AND usename = current_user AND application_name = $2 AND state <> 'active'`;

/**
 * Finds connections that died without a word while they wait for a long statement: asked over another connection, the
 * server knows nothing of the statement, or has ended it. A timeout would have to be as long as the longest statement.
 */
export class SilenceWatch {
  private readonly clients = new Set<WatchedClient>();
  /** The statement for which a client waited at the last look, when the server was not at work on it. */
  private suspects = new Map<WatchedClient, number>();

  /**
   * @param sql another way to the server, whose own silence is bounded
   * @param applicationName of the watched connections
   */
  constructor(
    private readonly sql: Pick<pg.Pool, 'query'>,
    private readonly applicationName: string,
  ) {}

  follow(client: WatchedClient): void {
    this.clients.add(client);
    client.once('end', () => {
      this.clients.delete(client);
      this.suspects.delete(client);
    });
  }

  /** Looks once, and cuts who was found so at the last look too: an answer may be on its way. */
  async look(): Promise<void> {
    const waiting = [...this.clients].filter((client) => client.waitsFor !== undefined);
    if (waiting.length === 0) return this.suspects.clear();
    const asked = new Map(waiting.map((client) => [client, client.waitsFor]));
    const { rows } = await this.sql.query<Backend>(BACKENDS, [waiting.map(({ pid }) => pid)]);
    const atWork = new Set(rows.filter((backend) => backend.isAtWork).map(({ pid }) => pid));
    const silent = waiting.filter((client) => !atWork.has(client.pid) && client.waitsFor === asked.get(client));
    const cut = silent.filter((client) => this.suspects.get(client) === client.waitsFor);
    this.suspects = new Map(silent.map((client) => [client, client.waitsFor ?? 0]));
    for (const client of cut) client.connection.stream.destroy();
    if (cut.length > 0) await this.sql.query(END, [cut.map(({ pid }) => pid), this.applicationName]);
  }
}
