import { connectionFault } from './connection-limits.js';

const limits = { processes: 3, connections: 54, server: 97, database: null, role: null };

test('nothing is said while the processes fit', () => {
  expect(connectionFault(limits, 18)).toBeUndefined();
});

test.each([
  [
    { ...limits, server: 71 },
    /^4 processes of this service may open 72 connections .* the server .* allows 71\. Lower/,
  ],
  [{ ...limits, database: 60 }, /but the database .* allows 60/],
  [{ ...limits, database: 60, role: 50 }, /but the role of DATABASE_URL .* allows 50/],
])('a lower limit is named with the number of processes', (given, sentence) => {
  expect(connectionFault(given, 18)).toMatch(sentence);
});

test('running processes are compared without one more', () => {
  expect(connectionFault({ ...limits, role: 54 }, 0)).toBeUndefined();
  expect(connectionFault({ ...limits, processes: 1, role: 53 }, 0)).toMatch(/^This process may open 54/);
});
