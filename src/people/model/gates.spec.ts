import { type Breaker, breakerOf } from './circuit-breaker.js';
import { newcomer } from './newcomer.spec-support.js';
import { BLIND_CREATE, type CallStep, gatesOf, isCreate, operationOf, QUEUES, queueOf } from './next-step.js';
import { OPERATIONS, type Operation } from './person.js';

const NOW = Date.UTC(2026, 0, 1);
const client = newcomer('client');
const call = (operation: Operation, subject?: CallStep['subject']): CallStep => ({
  ...{ do: 'call', operation, state: 'pending', notBefore: null },
  ...(subject && { subject }),
});

test('only creates must not be repeated', () => {
  expect(OPERATIONS.filter((operation) => isCreate({ operation }))).toEqual(['createProvider', 'createClient']);
});

describe('the queue of a call', () => {
  test.each(OPERATIONS)('is the operation %s if the person has an email', (operation) => {
    expect(queueOf(call(operation), { ...client, email: 'e' })).toBe(operation);
    expect(operationOf(operation)).toBe(operation);
  });

  test('is another one for a create without an email, and for the check that precedes it', () => {
    expect(queueOf(call('createClient'), client)).toBe(BLIND_CREATE);
    expect(queueOf(call('checkUser', 'any'), client)).toBe(BLIND_CREATE);
    expect(operationOf(BLIND_CREATE)).toBe('createClient');
  });

  test('is the check for other checks of a person without an email', () => {
    expect(queueOf(call('checkUser', 'any'), { ...client, platformUserId: 'u1' })).toBe('checkUser');
    expect(queueOf(call('checkUser', 'attempted'), client)).toBe('checkUser');
  });

  test('is one of six', () => {
    expect(QUEUES).toEqual([
      ...['checkUser', 'createProvider', 'createClient', 'createClientWithoutEmail'],
      ...['setClientProviders', 'deleteUser'],
    ]);
  });
});

describe('the gate of a queue', () => {
  const blocked = (until: number, person: string | null, code = 'platform-fault') =>
    ({
      ...breakerOf({}, 'checkUser'),
      failedAt: NOW,
      block: { code, status: null, failures: 1, until, probe: null, person },
    }) as Breaker;
  const gate = (queue: string, ...given: Parameters<typeof gatesOf>) =>
    gatesOf(...given).find((one) => one.queue === queue);

  test('is closed without a block', () => {
    expect(gatesOf({}, NOW)).toEqual(QUEUES.map((queue) => ({ queue, phase: 'closed', until: 0, person: null })));
  });

  test('is open until the block of its own operation ends', () => {
    const breakers = { deleteUser: blocked(NOW + 5, 'p-1') };
    expect(gate('deleteUser', breakers, NOW)).toMatchObject({ phase: 'open', until: NOW + 5, person: 'p-1' });
    expect(gate('deleteUser', breakers, NOW + 5)).toMatchObject({ phase: 'half-open', until: 0, person: 'p-1' });
    expect(gate('createClient', breakers, NOW)).toMatchObject({ phase: 'closed' });
  });

  test('of creates without an email opens only when the check may be called, too', () => {
    const create = blocked(NOW + 5, null);
    const both = { createClient: create, checkUser: blocked(NOW + 9, 'p-2') };
    expect(gate(BLIND_CREATE, both, NOW)).toMatchObject({ phase: 'open', until: NOW + 9, person: null });
    expect(gate(BLIND_CREATE, both, NOW + 5)).toMatchObject({ phase: 'open', until: NOW + 9 });
    expect(gate(BLIND_CREATE, { checkUser: both.checkUser }, NOW)).toMatchObject({ phase: 'open', person: 'p-2' });
    expect(gate(BLIND_CREATE, { createClient: create }, NOW + 5)).toMatchObject({ phase: 'half-open' });
  });

  test('of creates without an email does not need the check while the platform answers', () => {
    const breakers = { checkUser: blocked(NOW + 9, 'p-2', 'platform-unauthorized') };
    expect(gate(BLIND_CREATE, breakers, NOW)).toMatchObject({ phase: 'closed' });
  });

  test('is open under a hold, except that of the check, which only reads', () => {
    const held = gatesOf({ deleteUser: blocked(NOW, 'p-1') }, NOW, true);
    const others = held.filter(({ queue }) => queue !== 'checkUser');
    expect(held.filter(({ phase }) => phase === 'closed').map(({ queue }) => queue)).toEqual(['checkUser']);
    for (const one of others)
      expect(one).toMatchObject({ phase: 'open', until: Number.POSITIVE_INFINITY, person: null });
    expect(others).toHaveLength(5);
  });
});
