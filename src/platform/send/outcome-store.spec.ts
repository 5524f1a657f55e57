import { setTimeout as delay } from 'node:timers/promises';
import { Clock } from '../../config/clock.js';
import { OutcomeStore } from './outcome-store.js';

test('a shutdown waits until an outcome that the database refused is stored', async () => {
  const outcomes = new OutcomeStore(new Clock());
  let isStored = false;
  let failures = 2;
  const saved = outcomes.save({ job: '1' }, async () => {
    if (failures-- > 0) throw Object.assign(new Error('Connection terminated'), { code: 'ECONNRESET' });
    await delay(1);
    isStored = true;
  });
  await outcomes.onApplicationShutdown();
  expect([isStored, await saved]).toEqual([true, true]);
});
