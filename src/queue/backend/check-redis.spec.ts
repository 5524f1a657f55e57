import { refuseUnfit } from './check-redis.js';

const info = (version: string, policy = 'noeviction') =>
  `# Server\r\nredis_version:${version}\r\n# Memory\r\nmaxmemory_policy:${policy}\r\n`;

test.each(['6.2.0', '6.10.1', '7.4.2', '10.0.0'])('Redis %s is accepted', (version) => {
  expect(() => refuseUnfit(info(version))).not.toThrow();
});

test.each(['6.0.16', '5.9.9', '6.1.99'])('Redis %s is refused', (version) => {
  expect(() => refuseUnfit(info(version))).toThrow(`REDIS_URL names Redis ${version}. The queues need 6.2.0 or newer.`);
});

test('a Redis that evicts keys is refused', () => {
  expect(() => refuseUnfit(info('7.4.2', 'volatile-lru'))).toThrow('set it to noeviction');
});

test('a reply without version and policy is accepted', () => {
  expect(() => refuseUnfit('# Server\r\n')).not.toThrow();
});
