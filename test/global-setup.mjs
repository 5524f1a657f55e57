// What the end-to-end suites share: the compiled programs, one PostgreSQL and one Redis, each on a random port of
// 127.0.0.1, in a temporary folder. They belong to the harness, so suites may kill any process of their own.
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setUp } from '../scripts/setup.mjs';

const require = createRequire(import.meta.url);

export default async function setup() {
  await setUp();
  const { findRedisServer, startRedis } = require('../dist/harness/redis-server.js');
  const redisServer = process.env.TEST_REDIS_URL ? undefined : findRedisServer();
  if (!redisServer && !process.env.TEST_REDIS_URL) complainAboutRedis();
  if (!require('../dist/harness/chromium.js').findChromium()) complainAboutBrowser();
  const leftovers = await import('./support/leftovers.mjs'); // needs the compiled code
  leftovers.sweep();
  const folder = leftovers.makeRunFolder();
  const stop = [];
  globalThis.testServers = { folder, stop };
  process.env.TEST_FOLDER = folder;
  if (!process.env.TEST_PG_URL) {
    const { startEmbeddedPostgres } = require('../dist/src/database/embedded-postgres.js');
    const server = await startEmbeddedPostgres({
      dataRoot: path.join(folder, 'data'),
      fsync: false,
      maxConnections: 400,
    });
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
 * A database with every migration applied: each suite gets a copy of it, which takes milliseconds. One for worlds has a
 * time of its own.
 */
async function makeTemplate({ isWorld = false } = {}) {
  const { withClient } = require('../dist/src/database/database.js');
  const { applyMigrations } = require('../dist/src/database/migrations.js');
  const { FOLLOW_TIME, CREATE_TIME, useTime } = require('../dist/harness/world/time.js');
  const name = `template_${randomBytes(6).toString('hex')}`;
  const url = Object.assign(new URL(process.env.TEST_PG_URL), { pathname: `/${name}` }).toString();
  await withClient(process.env.TEST_PG_URL, async (admin) => {
    await admin.query(`CREATE DATABASE ${name}`);
    if (isWorld) await useTime(admin, name);
  });
  if (isWorld) await withClient(url, (client) => client.query(CREATE_TIME));
  await applyMigrations(url);
  if (isWorld) await withClient(url, (client) => client.query(FOLLOW_TIME));
  return name;
}

function complainAboutRedis() {
  if (process.env.REQUIRE_REDIS === '1') {
    throw new Error(
      'REQUIRE_REDIS is 1 and no redis-server is on the PATH: install it (apt-get install redis-server).',
    );
  }
  console.warn(
    '\n*** LEFT OUT: every suite "on Redis", for no redis-server is on the PATH. The same suites run on PostgreSQL.\n' +
      '*** To run them install it (Debian: apt-get install redis-server); REQUIRE_REDIS=1 makes its absence a failure.\n',
  );
}

function complainAboutBrowser() {
  if (process.env.REQUIRE_BROWSER === '1') {
    throw new Error('REQUIRE_BROWSER is 1 and there is no Chromium: install it (Debian: apt-get install chromium).');
  }
  console.warn(
    '\n*** LEFT OUT: every suite of the console, for there is no Chromium.\n' +
      '*** To run them install it (Debian: apt-get install chromium); REQUIRE_BROWSER=1 makes its absence a failure.\n',
  );
}
