import path from 'node:path';
import { TLS } from '../src/platform/clients/loopback-platform.spec-support.js';
import { usePrograms } from './support/programs.js';

const run = usePrograms();

it('the service does not start where anything could be read on the way, and says all of it at once', async () => {
  const program = await run({
    file: 'dist/src/main.js',
    env: {
      PLATFORM_BASE_URL: 'https://platform.example',
      PLATFORM_API_KEY_FILE: path.join(__dirname, 'no-such-file'),
      PLATFORM_WEBHOOK_SECRET: 'webhook-secret-of-the-notebridge-tests',
      ADMIN_API_KEY: 'admin-key-of-the-notebridge-tests',
      DATABASE_URL: 'postgresql://u:hunter2@db.example/notebridge?sslmode=no-verify',
      REDIS_URL: 'redis://:hunter2@cache.example:6379',
      PLATFORM_PARTNER_DOMAIN: 'http://recorder.example',
      PUBLIC_URL: 'http://notes.example',
      NODE_TLS_REJECT_UNAUTHORIZED: '0',
    },
  });
  expect(await program.ended()).toBe(1);
  const named = [...program.output().matchAll(/^ {2}([A-Z_]+) must/gm)].map(([, name]) => name);
  expect(named.sort()).toEqual([
    'DATABASE_URL',
    'NODE_TLS_REJECT_UNAUTHORIZED',
    'PLATFORM_API_KEY_FILE',
    'PLATFORM_PARTNER_DOMAIN',
    'PUBLIC_URL',
    'REDIS_URL',
  ]);
  expect(program.output()).not.toContain('hunter2');
});

it('a platform without a certificate that somebody vouches for gets nothing, whatever Node is told', async () => {
  const program = await run({
    file: 'test/support/untrusted-platform.mjs',
    args: [JSON.stringify([TLS.key, TLS.cert])],
    env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
  });
  const [told = ''] = await program.printed(/^\{.*\}$/m);
  expect(JSON.parse(told)).toEqual({ usual: 200, ours: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
});
