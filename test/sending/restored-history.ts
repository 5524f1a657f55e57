import fc from 'fast-check';
import type { World } from '../../harness/world/world.js';
import { importsIn } from '../imports/imports.js';
import { peopleOf } from '../people/mirroring.js';
import { identitiesIn } from '../support/renamed-people.js';

/** A human in the EHR. */
interface Human {
  readonly kind: 'providers' | 'clients';
  readonly hasEmail: boolean;
  /** Every external id, the current one last. */
  readonly ids: [string, ...string[]];
  isThere: boolean;
  /** True if the EHR deleted it since the backup. */
  wasDeleted: boolean;
}

/** A command of the EHR, with people by their places in `HUMANS`, or a step of the service between commands. */
export type Command =
  | { do: 'put' | 'delete' | 'rename'; who: number }
  | { do: 'merge'; who: number; into: number }
  | { do: 'call'; times: number }
  | { do: 'settle' };

/** The outcome for a human of the EHR. */
export interface Outcome {
  readonly human: Human;
  readonly path: string;
  /** Its state, and its code if it has one. */
  readonly verdict: string;
  readonly isLinked: boolean;
  /** True if it is linked to a user that the platform no longer has. */
  readonly isDangling: boolean;
}

/** All clients have another provider, which stays. */
const HUMANS: readonly [kind: Human['kind'], id: string, hasEmail: boolean][] = [
  ['providers', 'p-1', true],
  ['clients', 'blind-1', false],
  ['clients', 'blind-2', false],
  ['clients', 'blind-3', false],
  ['clients', 'mail-1', true],
  ['clients', 'mail-2', true],
];

const who = fc.nat(HUMANS.length - 1);
const client = fc.integer({ min: 1, max: HUMANS.length - 1 });
export const anyCommand: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), who }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), who }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rename' as const), who }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('merge' as const), who: client, into: client }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('call' as const), times: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('settle' as const) }) },
);

const currentId = ({ ids }: Human) => ids[ids.length - 1] ?? '';
const pathOf = (human: Human) => `${human.kind}/${currentId(human)}`;

/** An EHR that talks to the service of a world, and remembers what it said. */
export class Ehr {
  readonly humans: readonly Human[] = HUMANS.map(([kind, id, hasEmail]) => ({
    kind,
    hasEmail,
    ids: [id],
    isThere: false,
    wasDeleted: false,
  }));
  /** Renames and merges since the backup. */
  private identities: (() => Promise<{ status: number }>)[] = [];

  constructor(private readonly world: World) {}

  /** Forgets what the EHR said, because a backup contains it. */
  backedUp(): void {
    this.identities = [];
    for (const human of this.humans) human.wasDeleted = false;
  }

  async do(command: Command): Promise<void> {
    const { world } = this;
    if (command.do === 'settle') return world.settle();
    if (command.do === 'call') {
      for (let time = 0; time < command.times; time += 1) {
        await world.advance('50 ms');
        await world.work.nextJob();
      }
      return;
    }
    const human = this.humans[command.who] as Human;
    switch (command.do) {
      case 'put': {
        const { providers, ...names } = this.fieldsOf(human);
        const email = this.emailOf(human);
        const body = { ...names, ...(email && { email }), ...(providers && { providers: [providers] }) };
        const { status } = await world.call('PUT', `/v1/${pathOf(human)}`, { body });
        if (status < 300) human.isThere = true;
        return;
      }
      case 'delete': {
        const { status } = await world.call('DELETE', `/v1/${pathOf(human)}`);
        if (status < 300) human.isThere = false;
        if (status < 300) human.wasDeleted = true;
        return;
      }
      case 'rename': {
        const [path, id] = [pathOf(human), `${human.ids[0]}.${human.ids.length}`];
        if (await this.identify(() => identitiesIn(world).rename(path, id))) human.ids.push(id);
        return;
      }
      case 'merge': {
        const [path, into] = [pathOf(human), currentId(this.humans[command.into] as Human)];
        if (await this.identify(() => identitiesIn(world).merge(path, into))) human.isThere = false;
      }
    }
  }

  /** Says a rename or merge now, and again after a restore. @returns true if it was accepted */
  private async identify(say: () => Promise<{ status: number }>): Promise<boolean> {
    const { status } = await say();
    if (status === 200) this.identities.push(say);
    return status === 200;
  }

  /** Sends what the runbook asks for: renames and merges since the backup, then everyone. @returns the import's id */
  async sendEverything(): Promise<string> {
    for (const say of this.identities) await say();
    return this.sendAgain();
  }

  /** Sends everyone, with the platform's users of clients without an email. @returns the import's id */
  async sendAgain(): Promise<string> {
    const { planned, transition } = importsIn(this.world);
    const files = (['providers', 'clients'] as const).map((kind) => ({
      name: `${kind}.csv`,
      type: 'text/csv',
      content: this.csvOf(kind),
    }));
    const { id } = await planned('mode=snapshot', files);
    await transition(id, 'apply', ['deletes', 'providerRemovals', 'idColumn', 'looksDoubled']);
    return id;
  }

  /** Links the clients that wait for it and are on the platform, and lets the others be created. */
  async decide(): Promise<void> {
    const unknown = await this.world.sql<{ id: string }>(
      `SELECT external_id AS id FROM people WHERE error_code = 'restored-unknown' ORDER BY id`,
    );
    const humans = this.humans.filter((human) => unknown.some(({ id }) => id === currentId(human)));
    const rows = humans.flatMap((human) => {
      const [user] = this.usersOf(human);
      return user ? [`client,${currentId(human)},${user.userId}`] : [];
    });
    const content = ['kind,externalId,platformUserId', ...rows].join('\n');
    if (rows.length > 0) await importsIn(this.world).start('', [{ name: 'links.csv', type: 'text/csv', content }]);
    for (const human of humans.filter((one) => this.usersOf(one).length === 0))
      await peopleOf(this.world).resolve(pathOf(human), { action: 'create' });
    await this.world.settle();
  }

  /** Deletes those that are linked to a deleted user, and imports them with the user that the platform has now. */
  async linkAgain(): Promise<void> {
    const { remove } = peopleOf(this.world);
    const dangling = (await this.outcomes()).filter(({ isDangling }) => isDangling);
    for (const { human, path } of dangling) {
      await remove(path);
      const kind = human.kind.slice(0, -1);
      const { providers, ...names } = this.fieldsOf(human);
      const row = { kind, externalId: currentId(human), ...names, email: this.emailOf(human), providers };
      const cells = Object.entries({ ...row, platformUserId: this.usersOf(human)[0]?.userId ?? '' });
      const content = [0, 1].map((at) => cells.map((cell) => cell[at]).join(',')).join('\n');
      await importsIn(this.world).start('', [{ name: 'again.csv', type: 'text/csv', content }]);
      await this.world.settle();
    }
  }

  /** The platform's users of a human, under any of its ids. */
  usersOf({ ids }: Human) {
    return ids.flatMap((id) => this.world.platform.usersOf(id));
  }

  /** The outcomes for everyone in the EHR. */
  async outcomes(): Promise<Outcome[]> {
    const { get, verdictOf } = peopleOf(this.world);
    const { users } = this.world.platform.simulator.state;
    return Promise.all(
      this.humans
        .filter(({ isThere }) => isThere)
        .map(async (human) => {
          const path = pathOf(human);
          const person = await get(path);
          const isLinked = person.platformUserId !== null;
          const isDangling = isLinked && users.find(person.platformUserId ?? '') === undefined;
          return { human, path, verdict: verdictOf(person).join(' ').trim(), isLinked, isDangling };
        }),
    );
  }

  private fieldsOf({ kind }: Human) {
    return { firstName: 'Pia', lastName: 'Ruiz', providers: kind === 'clients' ? 'home' : '' };
  }

  private emailOf({ hasEmail, ids }: Human): string {
    return hasEmail ? `${ids[0]}@example.org` : '';
  }

  private csvOf(kind: Human['kind']): string {
    const own = this.humans.filter((human) => human.kind === kind && human.isThere);
    const lines = own.map((human) => {
      const userId = human.hasEmail ? '' : (this.usersOf(human)[0]?.userId ?? '');
      return `${currentId(human)},${this.emailOf(human)},Pia,Ruiz${kind === 'clients' ? `,home,${userId}` : ''}`;
    });
    if (kind === 'providers')
      return ['externalId,email,firstName,lastName', 'home,home@example.org,Pia,Ruiz', ...lines].join('\n');
    const header = 'externalId,email,firstName,lastName,providers,platformUserId';
    return [header, 'stays,stays@example.org,Pia,Ruiz,home,', ...lines].join('\n');
  }
}
