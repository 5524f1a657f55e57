import { type ImportFile, sumOfOutcomes } from '../../harness/service.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { everyItem } from '../ehr.js';
import type { World } from '../world.js';
import type { FeedWatch } from './feed-watch.js';

/** Every fourth client has no email, so that a create without an answer needs a review. */
const hasEmail = (client: number): boolean => client % 4 !== 0;

interface ImportSize {
  readonly providers: number;
  readonly clients: number;
  /** Number of providers that the platform already knows. */
  readonly known: number;
}

/** One import of providers, and of clients that name one to three of them. */
export class ImportWork {
  readonly files: readonly ImportFile[];
  readonly people: number;
  /** Minimum of calls that it needs. */
  readonly calls: number;
  private id = '';
  private before = 0;

  constructor(
    private readonly world: World,
    private readonly size: ImportSize,
  ) {
    const { providers, clients, known } = size;
    this.people = providers + clients;
    const emails = Array.from({ length: clients }, (_, n) => n).filter(hasEmail).length;
    this.calls = providers + (providers - known) + emails + clients;
    this.files = [
      csv('providers.csv', 'externalId,email,firstName,lastName', providers, (n) => [
        `p-${n}`,
        `p-${n}@example.org`,
        'Pia',
        `N${n}`,
      ]),
      csv('clients.csv', 'externalId,email,firstName,lastName,providers', clients, (n) => [
        `c-${n}`,
        hasEmail(n) ? `c-${n}@example.org` : '',
        'Cleo',
        `N${n}`,
        this.providersOf(n).join('|'),
      ]),
    ];
    for (let n = 0; n < known; n++) {
      const names = { firstName: 'Pia', lastName: `N${n}` };
      const { users } = world.simulator.state;
      users.add({ role: 'HealthcareProvider', email: `p-${n}@example.org`, ...names, providerUserIds: [] });
    }
  }

  /** Uploads the files. @returns the import's id */
  async begin(): Promise<string> {
    this.before = this.world.arrivals();
    this.id = (await (await this.world.processes.api()).startImport('kind=clients', [...this.files])).id;
    return this.id;
  }

  /** Waits until this share of the calls has arrived at the platform. */
  async reaches(share: number): Promise<void> {
    const calls = share * this.calls;
    await this.world.reach(
      `${Math.ceil(calls)} calls have arrived`,
      () => this.world.arrivals() - this.before >= calls,
    );
  }

  /** Waits for the end, and checks the invariants of all people. */
  async ended(feed: FeedWatch): Promise<void> {
    const { oracle, ehr } = this.world;
    const view = await this.world.reach('the import has ended', async () => {
      const answer = await ehr.call<ImportResponse>('GET', `/v1/imports/${this.id}`, { wait: 1 });
      return answer?.body.finishedAt ? answer.body : undefined;
    });
    const { counts } = view;
    oracle.same('an import completes', view.state, 'completed');
    oracle.same(
      'the outcomes of an import add up to its rows',
      [counts.total, sumOfOutcomes(view)],
      [this.people, this.people],
    );
    oracle.same('people that the platform knew are linked', counts.linked >= this.size.known, true);
    oracle.same(
      'everyone is created or linked, or needs a review',
      counts.created + counts.linked + counts.needsReview,
      this.people,
    );
    await feed.readToEnd();
    await this.checkPeople(feed);
  }

  private async checkPeople(feed: FeedWatch): Promise<void> {
    const { oracle, simulator, processes } = this.world;
    const { users } = simulator.state;
    const api = await processes.api();
    const people = [
      ...(await everyItem<PersonResponse>(api, '/v1/providers')),
      ...(await everyItem<PersonResponse>(api, '/v1/clients')),
    ].filter(({ externalId }) => /^[pc]-\d+$/.test(externalId));
    oracle.same('no one is created twice', users.duplicates(), { partnerUserIds: [], emails: [] });
    const platformIds = new Map(people.map((person) => [person.externalId, person.platformUserId]));
    const inReview = people.filter(({ sync }) => sync.state === 'needs-review');
    oracle.none(
      'only clients without an email need a review',
      inReview.filter(({ email, sync }) => email !== null || sync.error?.code !== 'create-unknown').map(stateOf),
    );
    const others = people.filter(({ sync }) => sync.state !== 'needs-review');
    oracle.none('everyone else is synced', others.filter(({ sync }) => sync.state !== 'synced').map(stateOf));
    oracle.none(
      'the platform has everyone with the providers that the EHR set',
      others
        .filter(({ externalId, platformUserId, providers }) => {
          const user = users.find(platformUserId ?? '');
          const wanted = (providers ?? []).map((provider) => platformIds.get(provider));
          return user?.lastName !== `N${externalId.slice(2)}` || `${user.providerUserIds}` !== `${wanted}`;
        })
        .map(stateOf),
    );
    const linked = new Set(platformIds.values());
    oracle.atMost(
      'the platform has no one that the EHR does not know',
      users.list().filter(({ userId, lastName }) => lastName?.startsWith('N') && !linked.has(userId)).length,
      inReview.length,
    );
    const reported = feed.subjectsOf('person.synced');
    oracle.none(
      'the feed reports everyone who is synced',
      others.filter(({ kind, externalId }) => !reported.has(`${kind}s/${externalId}`)).map(stateOf),
    );
    oracle.same(
      'the feed reports the end of the import',
      feed.subjectsOf('import.finished').has(`imports/${this.id}`),
      true,
    );
  }

  private providersOf(client: number): string[] {
    return Array.from({ length: 1 + (client % 3) }, (_, at) => `p-${(client * 7 + at) % this.size.providers}`);
  }
}

const stateOf = ({ externalId, sync }: PersonResponse) => [externalId, sync.state, sync.error?.code ?? null];

function csv(name: string, header: string, rows: number, row: (n: number) => string[]): ImportFile {
  const lines = Array.from({ length: rows }, (_, n) => row(n).join(','));
  return { name, type: 'text/csv', content: [header, ...lines].join('\n') };
}
