import { newcomer } from '../reconcile/newcomer.spec-support.js';
import type { Origin, PersonRow } from '../store/person-row.js';
import { platformCopy } from './person-view.js';

const profile = { email: 'zoë@example.org', firstName: 'Zoë', lastName: 'Åkesson' };
const changed = { email: null, firstName: 'Zoë', lastName: 'Berg' };

function row(
  kind: 'provider' | 'client',
  origin: Origin,
  more: { givenPrimary?: string; primary?: string } = {},
): PersonRow {
  const person = { ...newcomer(kind), platformUserId: 'u9', givenPrimary: more.givenPrimary ?? null };
  const providers = more.primary ? [{ externalId: 'p1', platformUserId: more.primary }] : [];
  return { kind, origin, person, context: { providers } } as unknown as PersonRow;
}

test('what changed after the platform was given the person is told, never pushed', () => {
  const made = row('provider', 'created');
  expect(platformCopy(made, profile, profile)).toEqual({ notPushable: [], unknownThere: [] });
  expect(platformCopy(made, changed, profile).notPushable).toEqual(['email', 'lastName']);
});

test('the names of somebody who was found by the email are unknown there, and the email is known', () => {
  const linked = row('provider', 'linked');
  expect(platformCopy(linked, profile, profile)).toEqual({ notPushable: [], unknownThere: ['firstName', 'lastName'] });
  expect(platformCopy(linked, changed, profile).notPushable).toEqual(['email']);
});

test.each<Origin>(['event', 'resolved'])('nothing is known of whom nobody here made (%s)', (origin) => {
  const unknownThere = ['email', 'firstName', 'lastName'];
  expect(platformCopy(row('provider', origin), profile, null)).toEqual({ notPushable: [], unknownThere });
});

test('another primary provider than the one that the create named can not be told to the platform', () => {
  const copy = (primary: string) =>
    platformCopy(row('client', 'created', { givenPrimary: 'u1', primary }), profile, profile).notPushable;
  expect([copy('u1'), copy('u2')]).toEqual([[], ['primaryProvider']]);
  expect(platformCopy(row('client', 'linked', { primary: 'u1' }), profile, profile).unknownThere).toContain(
    'primaryProvider',
  );
});

test('whoever has no user has no copy on the platform', () => {
  const made = row('client', 'created');
  const nobody = { ...made, person: { ...made.person, platformUserId: null } };
  expect(platformCopy(nobody, changed, profile)).toEqual({ notPushable: [], unknownThere: [] });
});
