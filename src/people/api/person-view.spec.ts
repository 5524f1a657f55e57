import { notPushable } from './person-view.js';

const given = { email: 'zoë@example.org', firstName: 'Zoë', lastName: 'Åkesson' };
const wanted = { firstName: 'Zoë', lastName: 'Berg' };

test('fields that changed since the platform received them are not pushable', () => {
  expect(notPushable('created', given, given)).toEqual([]);
  expect(notPushable('created', wanted, given)).toEqual(['email', 'lastName']);
});

test('only a changed email is not pushable for a user found by its email', () => {
  expect(notPushable('linked', wanted, given)).toEqual(['email']);
});

test('compares nothing without a user or without a given profile', () => {
  expect(notPushable('event', wanted, null)).toEqual([]);
  expect(notPushable(null, wanted, given)).toEqual([]);
});
