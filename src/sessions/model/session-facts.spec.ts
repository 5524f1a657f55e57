import { randomBytes } from 'node:crypto';
import { Random } from '../../config/random.js';
import { Vault } from '../../vault/vault.js';
import { NO_FACTS, type SessionFacts, SessionFactsSeal } from './session-facts.js';

const [key, fingerprintKey] = [{ id: 'k1', key: randomBytes(32) }, randomBytes(32)];
const seal = new SessionFactsSeal(new Vault([key], fingerprintKey, new Random()));
const before = new SessionFactsSeal(new Vault([key], fingerprintKey, new Random(), { readsFormerLayout: true }));

const owner = { session_id: 's-1', provider_user_id: 'p-1', client_user_ids: ['c-1', 'c-2'] };
const facts: SessionFacts = { ...NO_FACTS, date: '2026-03-01', error: { code: 'words of theirs', message: 'Zoë' } };
const emptied = {
  ...{ date: null, session_created_at: null, session_duration_ms: null, recording_duration_ms: null },
  ...{ error_code: null, error_message: null },
};
const row = { id: 'id-1', ...owner, ...emptied, facts: seal.seal('id-1', owner, facts) };

test('the facts of a session open for the owner that they were sealed with', () => {
  expect(seal.open(row)).toEqual(facts);
});

test.each([
  ['the client', { client_user_ids: ['c-9'] }],
  ['the order of the clients', { client_user_ids: ['c-2', 'c-1'] }],
  ['one client less', { client_user_ids: ['c-1'] }],
  ['the provider', { provider_user_id: 'p-9' }],
  ['the session of the platform', { session_id: 's-9' }],
  ['the row', { id: 'id-9' }],
  ['all of it, and no facts', { client_user_ids: ['c-9'], facts: null }],
])('one UPDATE of %s makes them unreadable', (_, change) => {
  expect(() => seal.open({ ...row, ...change })).toThrow('A sealed value of sessions.facts does not open');
});

test('a row from before there were facts is read until all was sealed anew, and not after', () => {
  const former = { ...row, ...emptied, facts: null, date: '2026-03-01', error_code: 'low-content-transcript' };
  expect(before.open(former)).toEqual({
    ...{ ...NO_FACTS, date: '2026-03-01' },
    error: { code: 'low-content-transcript', message: '' },
  });
  expect(() => seal.open(former)).toThrow('does not open');
});
