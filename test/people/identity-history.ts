import fc from 'fast-check';
import type { World } from '../../harness/world/world.js';
import type { TraceResponse } from '../../src/people/api/trace.dto.js';
import { importsIn } from '../imports/imports.js';
import { ADMIN_KEY } from '../support/app.js';

/** Ten people of the EHR: two providers, of whom the clients name the first, and eight clients. */
const PEOPLE = 10;
const PROVIDERS = 2;

/** What an identity may be named by: its current id, or an earlier one. */
type Naming = 'current' | 'former';

export type Command =
  | { do: 'put' | 'delete'; who: number; by: Naming }
  | { do: 'rename'; who: number; by: Naming; to: 'new' | number }
  | { do: 'merge'; who: number; into: number }
  | { do: 'event'; who: number; isSecond: boolean }
  | { do: 'import'; who: number[]; by: Naming }
  | { do: 'work'; jobs: number }
  | { do: 'settle' };

/** Some people are named more often, so that much happens to them. */
const among = (first: number) =>
  fc.oneof(
    { weight: 2, arbitrary: fc.integer({ min: first, max: first + 3 }) },
    fc.integer({ min: first, max: PEOPLE - 1 }),
  );
const who = among(0);
const client = among(PROVIDERS);
const by = fc.constantFrom<Naming>('current', 'current', 'former');
const of = <Name extends Command['do'], Rest extends object>(name: Name, rest: fc.Arbitrary<Rest>) =>
  rest.map((more) => ({ do: name, ...more }) as unknown as Command);

export const anyCommand: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: of('put', fc.record({ who, by })) },
  { weight: 3, arbitrary: of('delete', fc.record({ who, by })) },
  { weight: 4, arbitrary: of('rename', fc.record({ who, by, to: fc.oneof(fc.constant('new' as const), who) })) },
  { weight: 6, arbitrary: of('merge', fc.record({ who: client, into: client })) },
  { weight: 3, arbitrary: of('event', fc.record({ who, isSecond: fc.boolean() })) },
  { weight: 2, arbitrary: of('import', fc.record({ who: fc.uniqueArray(who, { minLength: 1, maxLength: 4 }), by })) },
  { weight: 3, arbitrary: of('work', fc.record({ jobs: fc.integer({ min: 1, max: 4 }) })) },
  { weight: 3, arbitrary: of('settle', fc.constant({})) },
);

/** A person of the EHR. */
interface Identity {
  kind: 'provider' | 'client';
  /** All its ids, the current one last. */
  ids: string[];
  isWanted: boolean;
  /** True once the EHR has deleted it, and until then no user of it may go. */
  wasDeleted: boolean;
}

interface Profile {
  firstName: string;
  lastName: string;
  email?: string;
  providers?: string[];
}

/** What the EHR did, and what must therefore be true. */
export class IdentityHistory {
  /** One for each of the ten; two that were merged share one. */
  private readonly of: Identity[] = Array.from({ length: PEOPLE }, (_, n) => ({
    ...{ kind: n < PROVIDERS ? 'provider' : 'client', ids: [`${n < PROVIDERS ? 'p' : 'c'}-${n}`] },
    ...{ isWanted: false, wasDeleted: false },
  }));
  private readonly faults: string[] = [];
  /** The people of users on the platform, by the id of the user. */
  private readonly users = new Map<string, Identity>();

  constructor(private readonly world: World) {}

  async do(command: Command): Promise<void> {
    switch (command.do) {
      case 'put':
        return this.put(this.named(command), command.who, command.by);
      case 'delete':
        return this.delete(this.named(command), command.by);
      case 'rename':
        return this.rename(this.named(command), command.by, command.to);
      case 'merge':
        return this.merge(command.who, command.into);
      case 'event':
        return this.tell(this.named(command), command.isSecond);
      case 'import':
        return this.import(command.who, command.by);
      case 'work':
        for (let job = 0; job < command.jobs; job++) await this.world.work.nextJob();
        return this.look();
      case 'settle':
        await this.world.settle();
        return this.look();
    }
  }

  /** Ends the history, and checks what must be true. @returns what is not */
  async end(): Promise<string[]> {
    await this.world.settle();
    await this.world.advance('20 min');
    await this.world.settle();
    this.look();
    for (const identity of new Set(this.of)) await this.check(identity);
    await this.checkUsers();
    return this.faults;
  }

  private named({ who }: { who: number }): Identity {
    return this.of[who] as Identity;
  }

  private async put(identity: Identity, n: number, naming: Naming): Promise<void> {
    const id = idOf(identity, naming);
    const status = await this.say('PUT', identity, id, '', this.profileOf(identity, n));
    if (this.isRefused(identity, id, status, 'PUT')) return;
    if (status < 300) identity.isWanted = true;
  }

  private async delete(identity: Identity, naming: Naming): Promise<void> {
    const id = idOf(identity, naming);
    const status = await this.say('DELETE', identity, id);
    if (this.isRefused(identity, id, status, 'DELETE')) return;
    if (status < 300) Object.assign(identity, { isWanted: false, wasDeleted: true });
  }

  private async rename(identity: Identity, naming: Naming, to: 'new' | number): Promise<void> {
    const id = idOf(identity, naming);
    const named = to === 'new' ? undefined : this.of[to];
    const other = named?.kind === identity.kind ? named : undefined;
    const newId = other?.ids[0] ?? `${currentOf(identity)}x`;
    const isKnown = identity.isWanted || identity.wasDeleted;
    const status = await this.say('POST', identity, id, '/rename', { externalId: newId });
    if (this.isRefused(identity, id, status, 'rename')) return;
    const isUsed = other !== undefined && (other.isWanted || other.wasDeleted);
    const expected = !isKnown ? 404 : isUsed && newId !== id ? 409 : 200;
    if (status !== expected) this.faults.push(`rename of ${id} to ${newId} is answered ${status}`);
    if (status !== 200 || newId === id) return;
    // Whoever the EHR has not named yet gets another id.
    if (other && other !== identity) other.ids = [`${newId}-`];
    identity.ids.push(newId);
  }

  private async merge(who: number, into: number): Promise<void> {
    const [one, other] = [this.of[who] as Identity, this.of[into] as Identity];
    if (one === other) return;
    const status = await this.say('POST', one, currentOf(one), '/merge', { into: currentOf(other) });
    const isPossible = one.isWanted && other.isWanted;
    if (isPossible ? ![200, 409].includes(status) : ![404, 409, 422].includes(status))
      this.faults.push(`merge of ${currentOf(one)} into ${currentOf(other)} is answered ${status}`);
    if (status !== 200) return;
    other.ids.unshift(...one.ids);
    for (const [n, identity] of this.of.entries()) if (identity === one) this.of[n] = other;
    for (const [user, identity] of this.users) if (identity === one) this.users.set(user, other);
  }

  /** The platform reports a user again, or one that it made itself. */
  private async tell(identity: Identity, isSecond: boolean): Promise<void> {
    const { state } = this.world.platform.simulator;
    const role = identity.kind === 'client' ? ('Client' as const) : ('HealthcareProvider' as const);
    const partnerUserId = identity.ids[0] as string;
    const isOpen = identity.isWanted;
    if (isSecond && isOpen) {
      state.users.add({ role, firstName: 'M', lastName: 'M', providerUserIds: [], partnerUserId });
    }
    const user = state.users.list().findLast((one) => identity.ids.includes(one.partnerUserId ?? ''));
    if (!user) return;
    const payload = { userId: user.userId, externalUserId: user.partnerUserId ?? '', role };
    state.deliveries.send({ eventType: 'USER_CREATED', payload });
    await this.world.platform.webhooksSent();
    await this.world.work.inbox();
    this.look();
  }

  private async import(people: readonly number[], naming: Naming): Promise<void> {
    const identities = [...new Set(people.map((n) => this.of[n] as Identity))];
    if (identities.some(({ kind }) => kind === 'client') && !this.named({ who: 0 }).isWanted) return;
    const lines = identities.map((identity) => {
      const { email = '', firstName, lastName, providers = [] } = this.profileOf(identity, this.of.indexOf(identity));
      return [identity.kind, idOf(identity, naming), email, firstName, lastName, providers.join('|')].join(',');
    });
    const content = ['kind,externalId,email,firstName,lastName,providers', ...lines].join('\n');
    const { start, rows } = importsIn(this.world);
    const id = await start('', [{ name: 'people.csv', type: 'text/csv', content }]);
    await this.world.work.imports();
    const shown = await rows(id);
    for (const identity of identities) {
      const row = shown.find(({ externalId }) => externalId === idOf(identity, naming));
      const isFormer = idOf(identity, naming) !== currentOf(identity);
      if (isFormer !== ['renamed', 'merged'].includes(row?.code ?? ''))
        this.faults.push(`a row of ${idOf(identity, naming)} has the code ${row?.code}`);
      if (!isFormer && row?.outcome !== 'rejected') identity.isWanted = true;
    }
  }

  private profileOf({ kind }: Identity, n: number): Profile {
    const names = { firstName: 'Pia', lastName: `Ruiz-${n}` };
    if (kind === 'provider') return { ...names, email: `p-${n}@example.org` };
    return { ...names, ...(n % 2 === 0 && { email: `c-${n}@example.org` }), providers: [currentOf(this.of[0])] };
  }

  private async say(method: string, { kind }: Identity, id: string, rest = '', body?: object): Promise<number> {
    const path = `/v1/${kind}s/${encodeURIComponent(id)}${rest}`;
    const { status } = await this.world.call(method, path, body ? { body } : {});
    this.look();
    if (status >= 500) this.faults.push(`${method} ${path} is answered ${status}`);
    return status;
  }

  /** A former id is refused, and never used for another person. */
  private isRefused(identity: Identity, id: string, status: number, what: string): boolean {
    if (id === currentOf(identity)) return false;
    if (status !== 409) this.faults.push(`${what} of the former id ${id} is answered ${status}`);
    return true;
  }

  /** Finds users that are gone although the EHR has not deleted their person, and notes new ones. */
  private look(): void {
    const listed = this.world.platform.simulator.state.users.list();
    const present = new Set(listed.map(({ userId }) => userId));
    for (const [user, identity] of this.users) {
      if (present.has(user)) continue;
      if (!identity.wasDeleted) this.faults.push(`a user of ${currentOf(identity)}, who was never deleted, is gone`);
      this.users.delete(user);
    }
    for (const { userId, partnerUserId = '' } of listed) {
      const identity = this.of.find(({ ids }) => ids.includes(partnerUserId));
      if (identity && !this.users.has(userId)) this.users.set(userId, identity);
      if (!identity) this.faults.push(`the platform has a user of ${partnerUserId}, which no one has`);
    }
  }

  private async check(identity: Identity): Promise<void> {
    if (!identity.isWanted && !identity.wasDeleted) return;
    const current = currentOf(identity);
    for (const id of identity.ids) {
      const path = `${identity.kind}s/${encodeURIComponent(id)}`;
      const headers = { authorization: `Bearer ${ADMIN_KEY}` };
      const answer = await fetch(`${this.world.url}/v1/${path}`, { headers, redirect: 'manual' });
      const leadsTo = answer.status === 301 ? answer.headers.get('location') : `${answer.status}`;
      const expected = id === current ? '200' : `/v1/${identity.kind}s/${encodeURIComponent(current)}`;
      if (leadsTo !== expected) this.faults.push(`${id} leads to ${leadsTo}, not ${expected}`);
    }
    const body = { kind: identity.kind, externalId: current };
    const { state, known } = (await this.world.call<TraceResponse>('POST', '/v1/people/trace', { body })).body;
    const wanted = identity.isWanted ? 'synced' : 'deleted';
    if (state !== wanted) this.faults.push(`${current} is ${state}, not ${wanted}`);
    const users = [known.platformUserId, ...known.otherPlatformUserIds].filter((id) => id !== null);
    const own = [...this.users].filter(([, person]) => person === identity).map(([user]) => user);
    if (`${users.sort()}` !== `${own.sort()}`) this.faults.push(`${current} has the users ${users}, not ${own}`);
  }

  /** No user is deleted twice, and none has two people. */
  private async checkUsers(): Promise<void> {
    const arrivals = this.world.platform.simulator.state.arrivals.list();
    const repeated = arrivals.filter(({ operation, status }) => operation === 'deleteUser' && status === 404);
    if (repeated.length > 0) this.faults.push(`${repeated.length} users were deleted twice`);
    for (const [user, identity] of this.users) {
      const path = `/v1/people/platform-users/${user}`;
      const { person } = (await this.world.call<{ person: { externalId: string } | null }>('GET', path)).body;
      if (person?.externalId !== currentOf(identity))
        this.faults.push(`a user of ${currentOf(identity)} is of ${JSON.stringify(person)}`);
    }
  }
}

const currentOf = (identity: Identity | undefined): string => identity?.ids.at(-1) ?? '';

const idOf = (identity: Identity, naming: Naming): string =>
  naming === 'former' ? (identity.ids[0] as string) : currentOf(identity);
