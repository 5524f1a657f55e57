import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { newcomer } from './newcomer.spec-support.js';
import type { Person, Unsettled } from './person.js';
import {
  checkMerge,
  giveBack,
  type Identities,
  merged,
  mergedUser,
  renamed,
  takeOver,
  unmerged,
} from './rename-rule.js';

/** Clients of one EHR, and what must hold of them, remembered independently of the rules. */
class Clients {
  identities: Identities = { people: [], formerIds: [] };
  readonly persons = new Map<string, Person>();
  /** The client that each was merged into, step by step. */
  readonly parents = new Map<string, string>();
  /** The client that first had each id that was ever used. */
  readonly owners = new Map<string, string>();
  /** The client of each platform user when it was created. */
  readonly users = new Map<string, string>();
  /** Users of merged clients that stay on the platform. */
  readonly kept = new Set<string>();
  readonly deleted = new Set<string>();

  /** The client that represents another one, found step by step. */
  headOf(id: string): string {
    const parent = this.parents.get(id);
    return parent === undefined ? id : this.headOf(parent);
  }

  heads(): string[] {
    return [...this.persons.keys()].filter((id) => !this.parents.has(id));
  }

  add(hasUser: boolean): void {
    const id = `person-${this.persons.size}`;
    const userId = hasUser ? `user-of-${id}` : null;
    if (userId) this.users.set(userId, id);
    this.owners.set(id, id);
    this.persons.set(id, { ...newcomer('client'), platformUserId: userId });
    this.identities.people.push({ id, externalId: id, mergedInto: null });
  }

  rename(id: string): void {
    const externalId = `id-${this.owners.size}`;
    this.owners.set(externalId, id);
    this.identities = renamed(this.identities, id, externalId);
  }

  merge(id: string, intoId: string, deletePlatformUser: boolean): void {
    const [client, survivor] = [this.person(id), this.person(intoId)];
    const user = mergedUser(client, survivor, deletePlatformUser);
    const userId = client.platformUserId;
    this.identities = merged(this.identities, id, intoId, userId);
    this.parents.set(id, intoId);
    this.persons.set(id, { ...client, platformUserId: null, wanted: false });
    if (user === 'taken-over') this.persons.set(intoId, takeOver(survivor, client));
    if (userId && user === 'kept') this.kept.add(userId);
    if (userId && user === 'deleted') this.deleted.add(userId);
  }

  unmerge(id: string): void {
    const head = this.headOf(id);
    const own = this.identities.formerIds.find(({ personId, intoId }) => personId === id && intoId !== null);
    const userId = own?.userId ?? null;
    const survivor = this.person(head);
    this.identities = unmerged(this.identities, id);
    this.parents.delete(id);
    const isHeld = userId !== null && (this.kept.delete(userId) || survivor.platformUserId === userId);
    if (isHeld && survivor.platformUserId === userId) this.persons.set(head, giveBack(survivor));
    this.persons.set(id, { ...this.person(id), platformUserId: isHeld ? userId : null, wanted: true });
  }

  person(id: string): Person {
    return this.persons.get(id) as Person;
  }

  /** The laws that do not hold, in words. */
  faults(): string[] {
    const { people, formerIds } = this.identities;
    const named = new Map(people.map((one) => [one.id, one]));
    const current = people.filter(({ mergedInto }) => mergedInto === null).map(({ externalId }) => externalId);
    const ids = [...current, ...formerIds.map(({ externalId }) => externalId)];
    const held = [...this.persons.values()].flatMap(({ platformUserId }) => platformUserId ?? []);
    const places = [...held, ...this.kept, ...this.deleted];
    return [
      ...people.filter(({ id, mergedInto }) => (mergedInto ?? id) !== this.headOf(id)).map(({ id }) => `${id}: head`),
      ...formerIds.filter(({ externalId, personId }) => personId !== this.owners.get(externalId)).map(() => 'an owner'),
      ...formerIds.filter(({ personId }) => !named.has(personId)).map(() => 'an id of no client'),
      ...(isSame(ids, this.owners.keys()) ? [] : ['an id was lost or used twice']),
      ...(isSame(places, this.users.keys()) ? [] : ['a platform user was lost or doubled']),
    ];
  }
}

const isSame = (some: Iterable<string>, others: Iterable<string>) =>
  [...some].sort().join() === [...others].sort().join();

const step = fc.record({
  what: fc.constantFrom('add', 'rename', 'merge', 'merge', 'merge', 'unmerge', 'unmerge'),
  one: fc.nat(),
  other: fc.nat(),
  flag: fc.boolean(),
});
const pick = (ids: string[], at: number) => ids[at % Math.max(1, ids.length)];

function take(
  clients: Clients,
  { what, one, other, flag }: typeof step extends fc.Arbitrary<infer T> ? T : never,
): void {
  const heads = clients.heads();
  const [first, second] = [pick(heads, one), pick(heads, other)];
  const undone = pick([...clients.parents.keys()], one);
  if (what === 'add' || first === undefined) clients.add(flag);
  else if (what === 'rename') clients.rename(first);
  else if (what === 'unmerge' && undone !== undefined) clients.unmerge(undone);
  else if (what === 'merge' && second !== undefined && first !== second)
    clients.merge(first, second, flag && other % 3 === 0);
}

test('in every history, each id ever used means one client, and no platform user is lost or doubled', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 30, size: 'max' }), (steps) => {
      const clients = new Clients();
      for (let added = 0; added < 3; added++) clients.add(added > 0);
      const faults: string[] = [];
      for (const each of steps) {
        take(clients, each);
        faults.push(...clients.faults());
      }
      expect(faults).toEqual([]);
    }),
    propertyRuns(),
  );
});

test('after every history, the undo of a merge restores every id and both users', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20, size: 'max' }), fc.nat(), fc.nat(), (steps, one, other) => {
      const clients = new Clients();
      for (let added = 0; added < 3; added++) clients.add(added > 0);
      for (const each of steps) take(clients, each);
      const heads = clients.heads();
      const [first, second] = [pick(heads, one), pick(heads, other)];
      if (first === undefined || second === undefined || first === second) return;
      const before = [sorted(clients.identities), userOf(clients, first), userOf(clients, second)];
      clients.merge(first, second, false);
      clients.unmerge(first);
      expect([sorted(clients.identities), userOf(clients, first), userOf(clients, second)]).toEqual(before);
    }),
    propertyRuns(),
  );
});

const sorted = ({ people, formerIds }: Identities) => [
  people.toSorted((a, b) => a.id.localeCompare(b.id)),
  formerIds.toSorted((a, b) => a.externalId.localeCompare(b.externalId)),
];
const userOf = (clients: Clients, id: string) => clients.person(id).platformUserId;

const unsettled = (operation: Unsettled['operation']): Unsettled => ({
  ...{ call: '1', operation, email: null, lookUpAt: new Date(0) },
});
const mirrored: Person = { ...newcomer('client'), platformUserId: 'u-1' };

test.each([
  ['client-deleted', { ...mirrored, wanted: false }, false],
  ['call-under-way', { ...newcomer('client'), unsettled: unsettled('createClient') }, false],
  ['call-under-way', { ...mirrored, unsettled: unsettled('deleteUser') }, false],
  ['session-requested', mirrored, true],
])('a merge is refused with %s', (type, client, isSessionRequested) => {
  expect(() => checkMerge(client, isSessionRequested)).toThrow(expect.objectContaining({ status: 409, type }));
});

test('a merge is possible while a list of the client is not settled', () => {
  expect(() => checkMerge({ ...mirrored, unsettled: unsettled('setClientProviders') }, false)).not.toThrow();
});

test('a survivor whose create may have made a user does not take over another one', () => {
  const survivor = { ...newcomer('client'), unsettled: unsettled('createClient') };
  expect(mergedUser(mirrored, survivor, false)).toBe('kept');
  expect(mergedUser(mirrored, newcomer('client'), true)).toBe('taken-over');
});
