import { DatabaseError } from 'pg';
import { retryUntilStored } from './retries.js';

const MINUTE_MS = 60_000;

/** Each pause takes a minute. */
function slowTime() {
  let now = 0;
  const pauses: number[] = [];
  const pause = async (ms: number) => {
    pauses.push(ms);
    now += MINUTE_MS;
  };
  return { clock: { monotonicMs: () => now }, pause, pauses };
}

const away = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const refusal = () => Object.assign(new DatabaseError('no', 2, 'error'), { code: '23505' });

function failing(...faults: Error[]) {
  let at = 0;
  return async () => {
    const fault = faults[at++];
    if (fault) throw fault;
    return at;
  };
}

test('retries often for as long as the database is unavailable', async () => {
  const { clock, pause, pauses } = slowTime();
  const outage = Array.from({ length: 600 }, away);
  expect(await retryUntilStored(failing(...outage), clock, pause)).toBe(601);
  expect(Math.max(...pauses)).toBe(500);
});

test('gives up after two minutes of rejections', async () => {
  const { clock, pause, pauses } = slowTime();
  await expect(retryUntilStored(failing(...Array.from({ length: 9 }, refusal)), clock, pause)).rejects.toMatchObject({
    code: '23505',
  });
  expect(pauses).toHaveLength(3);
});

test('counts the two minutes from when the database is available again', async () => {
  const { clock, pause } = slowTime();
  const faults = [refusal(), away(), away(), away(), refusal(), refusal(), refusal()];
  expect(await retryUntilStored(failing(...faults), clock, pause)).toBe(8);
});
