import { findRedisServer } from '../../harness/redis-server.js';
import { Contract } from './contract/contract.js';
import { describeLifetime } from './contract/lifetime.js';
import { describeLimits } from './contract/limits.js';
import { openMemory } from './contract/memory.js';
import { describeOrder } from './contract/order.js';
import { openPostgres, openRedis } from './contract/real.js';
import { describeRows } from './contract/rows.js';
import type { ContractStore } from './contract/store.js';

const STORES: [name: string, open: () => Promise<ContractStore>][] = [
  ['memory', openMemory],
  ['Redis', openRedis],
  ['PostgreSQL', openPostgres],
];

const available = STORES.filter(([name]) => name !== 'Redis' || findRedisServer() !== undefined);

// The product relies on each of these expectations. The stand-in of the world is right as long as it meets the same ones.
describe.each(available)('BullMQ on %s', (_, open) => {
  const contract = new Contract();
  beforeAll(async () => {
    contract.store = await open();
  });
  beforeEach(() => contract.begin());
  afterEach(() => contract.end());
  afterAll(() => contract.store.close());

  describeRows(contract);
  describeOrder(contract);
  describeLimits(contract);
  describeLifetime(contract);
});
