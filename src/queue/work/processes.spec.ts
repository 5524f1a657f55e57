import { WORKER_CONNECTIONS } from '../../database/connect/connection-shares.js';
import { QUEUE_NAMES } from '../backend/queue-names.js';
import { storeDigest } from './processes.js';

const redis = (url: string, more: object = {}) =>
  storeDigest({ REDIS_URL: url, QUEUE_PREFIX: 'bull', USER_MANAGEMENT_CALLS_PER_MINUTE: 300, ...more });

test('the digest of a store differs with its place, the prefix and the limit', () => {
  const all = [
    redis('redis://one'),
    redis('redis://two'),
    redis('redis://one:6380'),
    redis('redis://one/1'),
    redis('redis://one', { QUEUE_PREFIX: 'other' }),
    redis('redis://one', { USER_MANAGEMENT_CALLS_PER_MINUTE: 200 }),
    storeDigest({ QUEUE_PREFIX: 'bull', USER_MANAGEMENT_CALLS_PER_MINUTE: 300 }),
  ];
  expect(new Set(all).size).toBe(all.length);
});

test('the digest stays the same when a password is changed or the usual port is written', () => {
  expect(redis('redis://app:old@one')).toBe(redis('rediss://app:new@one:6379'));
});

test('on PostgreSQL, every worker has a connection that listens, and all share one', () => {
  expect(WORKER_CONNECTIONS).toBe(QUEUE_NAMES.length + 1);
});
