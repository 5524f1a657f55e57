import { callsLeft, callsOfImport } from './calls-left.js';

const NONE = { min: 0, max: 0 };

test('a client that is looked up first needs two or three calls, one that is created one or two', () => {
  expect(callsLeft([{ kind: 'client', step: 'checkUser', people: 10 }])).toEqual({ min: 20, max: 30 });
  expect(callsLeft([{ kind: 'client', step: 'createClient', people: 10 }])).toEqual({ min: 10, max: 20 });
  expect(callsLeft([{ kind: 'client', step: null, people: 10 }])).toEqual({ min: 10, max: 30 });
});

test('a provider needs no list', () => {
  expect(callsLeft([{ kind: 'provider', step: 'checkUser', people: 4 }])).toEqual({ min: 4, max: 8 });
  expect(callsLeft([{ kind: 'provider', step: 'deleteUser', people: 4 }])).toEqual({ min: 4, max: 4 });
});

test('an import needs no more calls than were planned, and one for each person who is due', () => {
  const due = [{ kind: 'client' as const, step: 'checkUser' as const, people: 10 }];
  expect(callsOfImport({ min: 5, max: 7 }, { min: 20, max: 20 }, due)).toEqual({ min: 25, max: 27 });
  expect(callsOfImport(NONE, NONE, due)).toEqual({ min: 10, max: 10 });
  expect(callsOfImport(NONE, { min: 40, max: 60 }, due)).toEqual({ min: 20, max: 30 });
});
