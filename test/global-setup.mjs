// Starts what the suites share: the compiled programs, one PostgreSQL and one Redis, on random ports of 127.0.0.1 and in
// a temporary folder.
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(import.meta.url);

export default async function setup() {
  process.stderr.write('Starting PostgreSQL and Redis …\n');
  const { findRedisServer, startRedis } = require('../dist/harness/redis-server.js');
  const redisServer = process.env.TEST_REDIS_URL ? undefined : findRedisServer();
  if (!redisServer && !process.env.TEST_REDIS_URL) complainAboutRedis();
  if (!require('../dist/harness/chromium.js').findChromium()) complainAboutBrowser();
  if (!require('../dist/harness/postgres-server.js').findPostgresPrograms()) complainAboutPostgres();
  const leftovers = await import('./support/leftovers.mjs'); // needs the compiled code
  leftovers.sweep();
  const folder = leftovers.makeRunFolder();
  const stop = [];
  globalThis.testServers = { folder, stop };
  process.env.TEST_FOLDER = folder;
  if (!process.env.TEST_PG_URL) {
    const { startEmbeddedPostgres } = require('../dist/demo/embedded-postgres/embedded-postgres.js');
    const server = await startEmbeddedPostgres(path.join(folder, 'data'), [
      'fsync=off',
      'full_page_writes=off',
      'max_connections=400',
    ]);
    stop.push(() => server.release());
    process.env.TEST_PG_URL = server.url;
  }
  process.env.TEST_PG_TEMPLATE = await makeTemplate();
  process.env.TEST_PG_WORLD = await makeTemplate({ isWorld: true });

  if (redisServer) {
    const home = path.join(folder, 'redis');
    mkdirSync(home);
    const server = await startRedis(redisServer, home);
    leftovers.remember(folder, server.pid);
    stop.push(() => server.stop());
    process.env.TEST_REDIS_URL = server.url;
  }
}

/**
 * A database with every migration. Each suite gets a copy, which takes milliseconds.
 *
 * @param isWorld true if its time is virtual
 */
async function makeTemplate({ isWorld = false } = {}) {
  const { withClient } = require('../dist/src/database/connect/session.js');
  const { applyMigrations } = require('../dist/src/database/migrations.js');
  const { FOLLOW_TIME, CREATE_TIME, STOP_AUTOVACUUM, useTime, withOptions } = require('../dist/harness/world/time.js');
  const name = `template_${randomBytes(6).toString('hex')}`;
  const url = Object.assign(new URL(process.env.TEST_PG_URL), { pathname: `/${name}` }).toString();
  await withClient(process.env.TEST_PG_URL, async (admin) => {
    await admin.query(`CREATE DATABASE ${name}`);
    if (isWorld) await useTime(admin, name);
  });
  if (isWorld) await withClient(url, (client) => client.query(CREATE_TIME));
  await applyMigrations(isWorld ? withOptions(url, '-c search_path=public') : url);
  if (isWorld) await withClient(url, (client) => client.query(`${FOLLOW_TIME}; ${STOP_AUTOVACUUM}`));
  return name;
}

function complainAboutRedis() {
  if (process.env.REQUIRE_REDIS === '1') {
    throw new Error('REQUIRE_REDIS is 1, but there is no redis-server on the PATH: apt-get install redis-server.');
  }
  console.warn(
    '\n*** SKIPPED: every suite "on Redis", because there is no redis-server on the PATH. The same suites run on PostgreSQL.\n' +
      '*** To run them: apt-get install redis-server. With REQUIRE_REDIS=1, a missing Redis fails the run.\n',
  );
}

function complainAboutBrowser() {
  if (process.env.REQUIRE_BROWSER === '1') {
    throw new Error('REQUIRE_BROWSER is 1, but there is no Chromium: apt-get install chromium.');
  }
  console.warn(
    '\n*** SKIPPED: every suite of the console, because there is no Chromium.\n' +
      '*** To run them: apt-get install chromium. With REQUIRE_BROWSER=1, a missing Chromium fails the run.\n',
  );
}

function complainAboutPostgres() {
  if (process.env.REQUIRE_POSTGRES === '1') {
    throw new Error('REQUIRE_POSTGRES is 1, but there are no programs of PostgreSQL: apt-get install postgresql.');
  }
  console.warn(
    '\n*** SKIPPED: the suite of backup and restore, because the programs of PostgreSQL are not installed.\n' +
      '*** To run it: apt-get install postgresql. With REQUIRE_POSTGRES=1, missing programs fail the run.\n',
  );
}
