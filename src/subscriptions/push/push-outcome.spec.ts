import { applyOutcome, type PushOutcome } from './push-outcome.js';
import type { SubscriptionRow } from './subscription-row.js';

const now = new Date('2026-01-31T08:00:00Z');
const mark = new Date('2026-01-31T08:00:20Z');
const taken = {
  version: 3n,
  url: 'u',
  types: ['person.synced'],
  epoch: 1n,
  position: 4n,
  paused: null,
  failures: 2,
  failingSince: mark,
  dueAt: mark,
};
const considered: PushOutcome = { kind: 'considered', cursor: '1-9', hasMore: false, isDelivered: true };
const failed: PushOutcome = { kind: 'failed', answer: { status: 500, fault: 'error-status' } };
const gone: PushOutcome = { kind: 'failed', answer: { status: 410, fault: 'error-status' } };
const apply = (outcome: PushOutcome, changed: object = {}) =>
  applyOutcome({ ...taken, ...changed } as SubscriptionRow, taken as SubscriptionRow, outcome, now);
const changed = { version: 4n };
const place = { epoch: 1n, position: 9n };

test.each([
  [
    'moves to what it considered, and rests',
    considered,
    {},
    { ...place, failures: 0, failingSince: null, deliveredAt: now, dueAt: null },
  ],
  ['is due now if there is more', { ...considered, hasMore: true }, {}, { dueAt: now }],
  [
    'fails no more if all events were passed over, because it was never asked',
    { ...considered, isDelivered: false },
    {},
    { ...place, dueAt: null, failures: 0, failingSince: null, deliveredAt: undefined },
  ],
  [
    'backs off after a failure',
    failed,
    {},
    { failures: 3, failingSince: mark, dueAt: new Date('2026-01-31T08:02:00Z') },
  ],
  ['is paused after 410', gone, {}, { paused: 'endpoint-gone', pausedAt: now, dueAt: null, failures: 3 }],
  ['is paused if events are gone', { kind: 'gone' }, {}, { paused: 'cursor-expired', dueAt: null, failures: 0 }],
  ['is due now if the work stopped', { kind: 'stopped' }, {}, { dueAt: now }],
  [
    'backs off if the work broke, which is no fault of the endpoint',
    { kind: 'broken' },
    {},
    { failures: 3, failingSince: undefined, dueAt: new Date('2026-01-31T08:05:00Z') },
  ],
  ['is due now if the work broke, but a caller has changed it', { kind: 'broken' }, changed, { dueAt: now }],
  [
    'keeps a success although its secret was rotated',
    considered,
    changed,
    { ...place, failures: 0, failingSince: null, deliveredAt: now, dueAt: now },
  ],
  ['keeps no success for another address', considered, { ...changed, url: 'v' }, { position: undefined, dueAt: now }],
  ['keeps no success for other types', considered, { ...changed, types: [] }, { position: undefined, dueAt: now }],
  [
    'keeps no success from another place',
    considered,
    { ...changed, position: 5n },
    { position: undefined, dueAt: now },
  ],
  ['keeps no failure of another address', failed, { ...changed, url: 'v' }, { failures: undefined, dueAt: now }],
  [
    'keeps a success during a pause, and rests',
    considered,
    { ...changed, paused: 'requested' },
    { ...place, dueAt: undefined },
  ],
  [
    'keeps nothing else during a pause',
    failed,
    { ...changed, paused: 'requested' },
    { failures: undefined, dueAt: undefined },
  ],
] as [string, PushOutcome, object, object][])('a subscription %s', (_rule, outcome, since, expected) => {
  const changes: object = apply(outcome, since);
  for (const [column, value] of Object.entries(expected))
    expect([column, Reflect.get(changes, column)]).toEqual([column, value]);
});
