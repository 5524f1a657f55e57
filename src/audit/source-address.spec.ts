import type { Socket } from 'node:net';
import { sourceNetwork } from './source-address.js';

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2:ffff::1', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80::/64'],
  ['', 'unknown'],
])('requests without a key from %j are counted under %j', (ip, source) => {
  expect(sourceNetwork({ ip, socket: {} as Socket })).toBe(source);
});
