import { setTimeout as delay } from 'node:timers/promises';
import { Clock } from '../../config/clock.js';
import { OutcomeWriter } from './outcome-writer.js';

test('a shutdown waits until an outcome that the database refused is stored', async () => {
  const outcomes = new OutcomeWriter(new Clock());
  let isStored = false;
  let failures = 2;
  const saved = outcomes.writeUntilStored({ job: '1' }, async () => {
    if (failures-- > 0) throw Object.assign(new Error('Connection terminated'), { code: 'ECONNRESET' });
    await delay(1);
    isStored = true;
  });
  await outcomes.onApplicationShutdown();
  expect([isStored, await saved]).toEqual([true, true]);
});
