import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { placeBinaries } from './embedded-postgres-binaries.js';
import { HomeClaim } from './embedded-postgres-claim.js';
import { CLUSTER_USER, type Cluster, ensureCluster } from './embedded-postgres-cluster.js';
import { findHome } from './embedded-postgres-home.js';
import {
  clusterUrl,
  connectOrStart,
  killServer,
  type OpenedServer,
  type ServerSettings,
  stopServer,
} from './embedded-postgres-server.js';

export interface EmbeddedPostgresOptions {
  /** The folder that holds (or, as root, points to) the server's data, such as the project's `.data`. */
  readonly dataRoot: string;
  /** On unless a test that doesn't judge durability switches it off. Counts for whoever starts the server. */
  readonly fsync?: boolean;
  /** 200 by default. Counts for whoever starts the server. */
  readonly maxConnections?: number;
  readonly log?: (line: string) => void;
}

export interface EmbeddedPostgres {
  /** Connection string of the service's database, password included: never to be logged. */
  readonly url: string;
  /** The folder that holds everything of this server. */
  readonly home: string;
  /** Lets go of the server; the last process to let go stops it. Safe to call twice. */
  release(): Promise<void>;
}

/** The `application_name` by which the processes that hold a server are counted. */
const HOLDER = 'notebridge holder';
const RETRY_MS = 1_000;

/**
 * A real PostgreSQL on a random port of 127.0.0.1, from the binaries in node_modules. The server is a process of its
 * own that outlives whoever started it; a later call, in this or another process, adopts it. As root it runs as
 * another user. While it is held, a server that dies is started again at the same address.
 *
 * @throws Error, one sentence, when the binaries are missing or can't run, or the data belongs to another user or is in
 * use from another container
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const settings = { fsync: options.fsync ?? true, maxConnections: options.maxConnections ?? 200 };
  const home = findHome(path.resolve(options.dataRoot));
  const claim = new HomeClaim(home, options.log);
  try {
    const { cluster, opened } = await claim.alone(async () => {
      const made = await ensureCluster(home, placeBinaries(home.folder, home.user), settings.fsync);
      const first = await connectOrStart(made, settings, HOLDER);
      await ensureDatabase(first.session);
      return { cluster: made, opened: first };
    });
    options.log?.(`embedded PostgreSQL ${opened.adopted ? 'adopted' : 'started'}, data in ${cluster.data}`);
    const holder = hold(cluster, settings, claim, opened);
    return { url: clusterUrl(cluster, opened.port, CLUSTER_USER), home: home.folder, release: holder.release };
  } catch (error) {
    claim.leave();
    throw error;
  }
}

async function ensureDatabase(session: pg.Client): Promise<void> {
  const { rowCount } = await session.query('SELECT FROM pg_database WHERE datname = $1', [CLUSTER_USER]);
  if (!rowCount) await session.query(`CREATE DATABASE ${CLUSTER_USER}`);
}

/**
 * Keeps one session open for as long as the server is held: the server itself then knows who holds it, and forgets a
 * holder that is killed. The session doesn't keep this process alive.
 */
function hold(
  cluster: Cluster,
  settings: ServerSettings,
  claim: HomeClaim,
  first: OpenedServer,
): { release(): Promise<void> } {
  let { session, pid } = first;
  let releasing: Promise<void> | null = null;
  let regaining: Promise<void> = Promise.resolve();

  const watch = (): void => {
    keepsProcessAlive(session, false);
    session.once('end', () => {
      if (!releasing) regaining = regain();
    });
  };
  const regain = async (): Promise<void> => {
    while (!releasing) {
      try {
        ({ session, pid } = await claim.alone(() => connectOrStart(cluster, settings, HOLDER, first.port)));
        return watch();
      } catch {
        await delay(RETRY_MS, undefined, { ref: false });
      }
    }
  };
  const letGo = async (): Promise<void> => {
    await regaining;
    keepsProcessAlive(session, true);
    try {
      await claim.alone(async () => {
        if (await isLastHolder(session)) {
          await stopServer(cluster);
          claim.giveUp();
        }
        await session.end().catch(() => {});
      });
    } finally {
      claim.leave();
    }
  };
  claim.onLost = () => {
    if (pid !== undefined) killServer(cluster, pid);
  };
  watch();
  return {
    release: () => {
      releasing ??= letGo();
      return releasing;
    },
  };
}

/** pg has these two on its client; its types don't know them. */
function keepsProcessAlive(session: pg.Client, alive: boolean): void {
  const socket = session as pg.Client & { ref(): void; unref(): void };
  if (alive) socket.ref();
  else socket.unref();
}

/** False when the session is gone: whoever holds the server next then stops it. */
async function isLastHolder(session: pg.Client): Promise<boolean> {
  try {
    const others = await session.query(
      'SELECT FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()',
      [HOLDER],
    );
    return others.rowCount === 0;
  } catch {
    return false;
  }
}
