import { newcomer } from '../model/newcomer.spec-support.js';
import type { Origin } from '../model/person.js';
import { notPushable } from './person-view.js';

const given = { email: 'zoë@example.org', firstName: 'Zoë', lastName: 'Åkesson' };
const wanted = { email: null, firstName: 'Zoë', lastName: 'Berg' };

const row = (origin: Origin, platformUserId: string | null = 'u9') => ({
  person: { ...newcomer('provider'), platformUserId, origin },
});

test('fields that changed since the platform received them are not pushable', () => {
  expect(notPushable(row('created'), given, given)).toEqual([]);
  expect(notPushable(row('created'), wanted, given)).toEqual(['email', 'lastName']);
});

test('only a changed email is not pushable for a user found by its email', () => {
  expect(notPushable(row('linked'), wanted, given)).toEqual(['email']);
});

test('compares nothing without a user or without a given profile', () => {
  expect(notPushable(row('event'), wanted, null)).toEqual([]);
  expect(notPushable(row('created', null), wanted, given)).toEqual([]);
});
