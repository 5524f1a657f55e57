import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { Problem } from '../../http/problem/problem.js';
import { afterCommit, pollUntil } from '../../http/request/waiting.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { becameListable, type Person, type PersonKind, type PersonState } from '../model/person.js';
import type { PersonRow } from '../model/person-row.js';
import { type PersonResponse, showPerson } from '../model/person-view.js';
import { type PersonKey, type Profile, ProfileSeal } from '../model/profile.js';
import {
  applyLink,
  applyResolve,
  RESOLVE_REFUSALS,
  type ResolveAction,
  resolveRefusal,
} from '../model/resolve-rule.js';
import { PlatformPeople } from '../reconcile/platform-people.js';
import { DependentsRepository } from '../store/dependents.repository.js';
import { linkedColumns, PeopleRepository } from '../store/people.repository.js';
import { PlatformUsersRepository } from '../store/platform-users.repository.js';
import { DesiredStateRepository } from './desired-state.repository.js';

/** States in which nothing more happens by itself. */
const SETTLED: PersonState[] = ['synced', 'failed', 'needs-review', 'deleted'];

/** Ahead of all imports, also of one that is paused. */
const EXPEDITED = { lane: 'interactive', paused_by_import: null };

/** A person that is locked and whose change is to be stored with the step that follows from it. */
interface Change {
  row: PersonRow;
  /** What is known now; without it what `row` says. */
  person?: Person;
  columns?: object;
}

/** The desired state of people, and what the EHR is shown of them. */
@Injectable()
export class PeopleService {
  constructor(
    private readonly database: Database,
    private readonly people: PeopleRepository,
    private readonly dependents: DependentsRepository,
    private readonly desired: DesiredStateRepository,
    private readonly users: PlatformUsersRepository,
    private readonly platform: PlatformPeople,
    private readonly seal: ProfileSeal,
    private readonly notifier: QueueNotifier,
  ) {}

  /**
   * Wants a person with this profile; a client with these providers.
   *
   * @throws {Problem} 422 `unknown-provider` when the EHR never named one of them
   */
  async put(key: PersonKey, profile: Profile, providers: string[] = []): Promise<PersonResponse> {
    return this.change(key, async (tx) => {
      const providerIds = await this.providerIds(tx, providers);
      const id = await this.desired.wantPerson(tx, key, profile);
      if (key.kind === 'client') await this.desired.wantProviders(tx, id, providerIds);
      return { row: await this.mustLoad(tx, id) };
    });
  }

  /** Wants this complete list of providers for a client. @throws {Problem} 404, or 422 `unknown-provider` */
  async putClientProviders(externalId: string, providers: string[]): Promise<PersonResponse> {
    const key: PersonKey = { kind: 'client', externalId };
    return this.change(key, async (tx) => {
      const providerIds = await this.providerIds(tx, providers);
      const { id, person } = await this.mustFind(tx, key);
      if (!person.wanted) throw notFound('client');
      await this.desired.wantProviders(tx, id, providerIds);
      const row = await this.mustLoad(tx, id);
      return { row, person: { ...person, fault: null }, columns: { ...EXPEDITED, wanted_at: row.context.now } };
    });
  }

  /** Wants a person to be gone. @throws {Problem} 404, or 409 `provider-in-use` with the number of clients */
  async remove(key: PersonKey): Promise<PersonResponse> {
    return this.change(key, async (tx) => {
      const { id } = await this.mustFind(tx, key);
      const clients = key.kind === 'provider' ? await this.desired.countClientsOf(tx, id) : 0;
      if (clients > 0) {
        const detail = `${clients} client${clients === 1 ? ' names' : 's name'} this provider; give them another list first, then delete it.`;
        throw new Problem(409, 'provider-in-use', detail, { extensions: { clients } });
      }
      await this.desired.wantAbsence(tx, id);
      return { row: await this.mustLoad(tx, id) };
    });
  }

  /** Shows a person, waiting until it is settled or needs a review. @param seconds to wait at most */
  async show(key: PersonKey, seconds = 0, signal?: AbortSignal): Promise<PersonResponse> {
    const read = async () => {
      const row = await this.people.find(this.database.pool, key);
      if (!row) throw notFound(key.kind);
      return this.view(row);
    };
    return pollUntil(seconds, read, (view) => SETTLED.includes(view.sync.state), signal);
  }

  /**
   * Waits for a person that was just changed.
   *
   * @param seconds to wait at most; 0 answers at once
   * @returns the person as it was changed where it can't be read again
   */
  async awaitSettled(view: PersonResponse, seconds: number, signal?: AbortSignal): Promise<PersonResponse> {
    if (seconds === 0 || SETTLED.includes(view.sync.state)) return view;
    return afterCommit(
      () => this.show(view, seconds, signal),
      () => view,
    );
  }

  /**
   * Resolves manually what the service could not settle.
   *
   * @throws {Problem} 404, 409 `platform-user-taken`, or 409 `call-under-way`, `nothing-to-resolve`
   */
  async resolve(key: PersonKey, action: ResolveAction, platformUserId?: string): Promise<PersonResponse> {
    return this.change(key, async (tx) => {
      const row = await this.mustFind(tx, key);
      const refusal = resolveRefusal(action, row.state, row.person);
      if (refusal) throw new Problem(409, refusal, RESOLVE_REFUSALS[refusal], { extensions: { state: row.state } });
      if (action !== 'link') return { row, person: applyResolve(row.person, action), columns: EXPEDITED };
      if (!platformUserId) {
        const detail = 'To link, name the user of the platform in platformUserId.';
        throw new Problem(422, 'platform-user-id-needed', detail, { pointer: '/platformUserId' });
      }
      if ((await this.users.fit(tx, platformUserId, row)).heldByAnother) {
        const detail = 'This user of the platform is linked to another person; find out which of the two it is.';
        throw new Problem(409, 'platform-user-taken', detail, { pointer: '/platformUserId' });
      }
      return { row, person: applyLink(row.person, platformUserId), columns: linkedColumns(row, 'resolved') };
    });
  }

  /** One page of people in the order of their external ids. Deleted ones are left out unless asked for. */
  async list(kind: PersonKind, state: PersonState | undefined, limit: number, after = ''): Promise<PersonResponse[]> {
    return this.select(
      `kind = $1 AND external_id > $2 AND ($3::person_state IS NULL AND state <> 'deleted' OR state = $3::person_state)
       ORDER BY external_id LIMIT $4`,
      [kind, after, state ?? null, limit],
    );
  }

  /** Finds people of both kinds by email or external id. */
  async search({ email, externalId }: { email?: string; externalId?: string }): Promise<PersonResponse[]> {
    return this.select(
      `state <> 'deleted' AND ($1::bytea IS NULL OR email_fingerprint = $1) AND ($2::text IS NULL OR external_id = $2)
       ORDER BY kind, external_id LIMIT 200`,
      [this.seal.emailFingerprint(email ?? null), externalId ?? null],
    );
  }

  private async select(condition: string, values: unknown[]): Promise<PersonResponse[]> {
    const { pool } = this.database;
    const { rows } = await pool.query<{ id: string }>(`SELECT id FROM people WHERE ${condition}`, values);
    const ids = rows.map(({ id }) => id);
    return (await this.people.loadMany(pool, ids)).map((row) => this.view(row));
  }

  /** Changes what is wanted or known of one person, decides anew, and notifies. */
  private async change(key: PersonKey, work: (tx: PoolClient) => Promise<Change>): Promise<PersonResponse> {
    const view = await this.database.transaction(async (tx) => {
      const before = await this.people.find(tx, key);
      const { row, person = row.person, columns } = await work(tx);
      await this.people.update(tx, row, person, columns);
      if (row.kind === 'client') await this.dependents.expediteProvidersOf(tx, row.id);
      else if (becameListable(before?.person, person)) await this.dependents.noteClientsOf(tx, row.id);
      return this.view(await this.mustLoad(tx, row.id));
    });
    this.notifier.notify(USER_MANAGEMENT_QUEUE, 'person-changed');
    return view;
  }

  private async providerIds(tx: PoolClient, externalIds: string[]): Promise<string[]> {
    if (externalIds.length === 0) return [];
    const named = await this.desired.nameProviders(tx, externalIds);
    return externalIds.map((externalId, position) => {
      const id = named.get(externalId);
      if (id) return id;
      const detail = `The provider at position ${position} is not known, or was deleted; PUT /v1/providers/{externalId} first, or correct the id.`;
      throw new Problem(422, 'unknown-provider', detail, { pointer: `/providers/${position}` });
    });
  }

  private async mustLoad(tx: PoolClient, id: string): Promise<PersonRow> {
    const row = await this.people.load(tx, id);
    if (!row) throw new Error('A person vanished while it was being changed.');
    return row;
  }

  private async mustFind(tx: PoolClient, key: PersonKey): Promise<PersonRow> {
    const row = await this.people.find(tx, key, true);
    if (!row) throw notFound(key.kind);
    return row;
  }

  private view(row: PersonRow): PersonResponse {
    return showPerson(row, this.seal, this.platform.isConfigured);
  }
}

function notFound(kind: PersonKind): Problem {
  return new Problem(
    404,
    `${kind}-not-found`,
    `No ${kind} with this external id is known; check the id, or PUT it first.`,
  );
}
