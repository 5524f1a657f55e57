import { Env } from '../../config/env.js';
import { connectionShares } from './connection-shares.js';

const ROLES: Env['ROLES'][] = [['api'], ['worker'], ['api', 'worker']];
const STORES = [undefined, 'redis://127.0.0.1'];

test('the pools of a process stay within its limit, and no needed pool is empty', () => {
  for (const roles of ROLES)
    for (const redis of STORES)
      for (let total = 17; total <= 100; total += 1) {
        const shares = connectionShares({ DATABASE_CONNECTIONS: total, ROLES: roles, REDIS_URL: redis });
        const sizes = Object.values(shares);
        expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(total);
        expect(Math.min(...sizes)).toBeGreaterThanOrEqual(0);
        expect(shares.usual).toBeGreaterThanOrEqual(3);
        expect([shares.bulk > 0, shares.uploads > 0]).toEqual([true, roles.includes('api')]);
      }
});

test('five processes with the default fit into the 97 connections of a server with its defaults', () => {
  expect(5 * new Env().DATABASE_CONNECTIONS).toBeLessThanOrEqual(97);
});
