import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { afterCommit } from '../../database/answer-after-commit.js';
import { pollUntil } from '../../database/poll-until.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { Contract } from '../../platform/contract/contract.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { HELD } from '../../sending/hold-code.js';
import { Sending } from '../../sending/sending.js';
import { type Person, type PersonKind, RESET_ON_WRITE } from '../rules/person.js';
import { LEGAL_HOLD } from '../rules/person-codes.js';
import type { Profile } from '../rules/person-field-rules.js';
import { type PersonKey, ProfileSeal } from '../rules/profile.js';
import { applyLink, applyResolve, checkResolve, keepsFormerUser, type ResolveAction } from '../rules/resolve-rule.js';
import { DeletedIds } from '../store/deleted-ids.repository.js';
import { DependentsRepository } from '../store/dependents.repository.js';
import { FormerIdsRepository } from '../store/former-ids.repository.js';
import { type MoreFields, PeopleRepository, STATED_BY_EHR } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { PlatformUsersRepository } from '../store/platform-users.repository.js';
import type { ClientsQuery } from './people.dto.js';
import { type PersonResponse, showPerson } from './person-view.js';

/** True if the service does not leave a person's state automatically. */
const isSettled = ({ sync: { state, error } }: PersonResponse): boolean =>
  ['synced', 'failed', 'needs-review', 'deleted'].includes(state) || [LEGAL_HOLD, HELD].includes(error?.code ?? '');

/** A locked person with a change that is stored together with the resulting step. */
interface Change {
  row: PersonRow;
  /** The known state after the change. Defaults to that of `row`. */
  person?: Person;
  fields?: MoreFields;
}

/** Changes the desired state of people, and shows people to the EHR. */
@Injectable()
export class PeopleService {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly dependents: DependentsRepository,
    private readonly users: PlatformUsersRepository,
    private readonly formerIds: FormerIdsRepository,
    private readonly deletedIds: DeletedIds,
    private readonly contract: Contract,
    private readonly seal: ProfileSeal,
    private readonly queues: WorkQueues,
    private readonly sending: Sending,
    private readonly audit: Audit,
  ) {}

  /**
   * Creates or changes a person, and the providers of a client.
   *
   * @throws {Problem} 422 `unknown-provider` if a provider is unknown or deleted
   */
  async put(key: PersonKey, profile: Profile, providers: string[] = []): Promise<PersonResponse> {
    return this.change(async (tx) => {
      const providerIds = await this.providerIds(tx, providers);
      const id = await this.people.wantPerson(tx, key, profile);
      // After the write, which waits for a rename or merge of this person.
      await this.formerIds.refuse(key.kind, [key.externalId], tx);
      if (key.kind === 'client') await this.dependents.wantProviders(tx, id, providerIds);
      return { row: await this.people.mustLock(tx, id) };
    });
  }

  /** Replaces a client's list of providers. @throws {Problem} 404, or 422 `unknown-provider` */
  async putClientProviders(externalId: string, providers: string[]): Promise<PersonResponse> {
    const key: PersonKey = { kind: 'client', externalId };
    return this.change(async (tx) => {
      const providerIds = await this.providerIds(tx, providers);
      const { id, person } = await this.mustLock(tx, key);
      if (!person.wanted)
        throw new Problem('client-not-found', 'This client was deleted. PUT it again, with its providers.');
      await this.dependents.wantProviders(tx, id, providerIds);
      const row = await this.people.mustLock(tx, id);
      const { now } = row.context;
      return {
        row,
        person: restated({ ...person, ...RESET_ON_WRITE }, now),
        fields: { ...STATED_BY_EHR, wantedAt: now, statedAt: now, wantedVersion: person.version + 1 },
      };
    });
  }

  /** Deletes a person. @throws {Problem} 404, or 409 `provider-in-use` with the number of clients */
  async remove(key: PersonKey): Promise<PersonResponse> {
    const removed = this.change(async (tx) => {
      const row = await this.mustLock(tx, key);
      const { id } = row;
      const clients = await tx.clientProvider.count({ where: { providerId: id, client: { wanted: true } } });
      if (clients > 0) {
        const detail = `${clients} client${clients === 1 ? ' names' : 's name'} this provider. Change their lists first, then delete it.`;
        throw new Problem('provider-in-use', detail, { extensions: { clients } });
      }
      await this.people.wantAbsence(tx, row);
      return { row: await this.people.mustLock(tx, id) };
    });
    return removed.catch(async (error: unknown) => {
      if (!(error instanceof Problem && error.status === 404)) throw error;
      // Otherwise an import has created the person since.
      if (await this.deletedIds.store(key)) throw error;
      return this.remove(key);
    });
  }

  /** Shows a person, waiting until it is settled. @param seconds the maximum wait @throws {Problem} 404; 301 */
  async show(key: PersonKey, seconds = 0, signal?: AbortSignal): Promise<PersonResponse> {
    const read = async () => {
      const row = await this.people.find(key);
      if (row) return this.view(row);
      await this.formerIds.redirect(key.kind, key.externalId);
      return this.unknown(key.kind);
    };
    return pollUntil(seconds, read, isSettled, signal);
  }

  /**
   * Waits until a person that was just changed is settled.
   *
   * @param seconds the maximum wait; 0 returns immediately
   * @returns `view` if the person cannot be read again
   */
  async awaitSettled(view: PersonResponse, seconds: number, signal?: AbortSignal): Promise<PersonResponse> {
    if (seconds === 0 || isSettled(view)) return view;
    return afterCommit(
      () => this.show({ kind: view.kind, externalId: view.externalId }, seconds, signal),
      () => view,
    );
  }

  /**
   * Resolves a person that the service could not settle.
   *
   * @param platformUserId of a link
   * @throws {Problem} 404; 409 `platform-user-taken`, `call-under-way`, `nothing-to-resolve`
   */
  async resolve(key: PersonKey, action: ResolveAction, platformUserId?: string): Promise<PersonResponse> {
    return this.change(async (tx) => {
      const row = await this.mustLock(tx, key);
      checkResolve(action, row.state, row.person, row.context);
      const fields = { ...STATED_BY_EHR, wantedAt: row.context.now, wantedVersion: row.person.version + 1 };
      if (action === 'link') return this.link(tx, row, platformUserId ?? '', fields);
      if (keepsFormerUser(action, row.person)) await this.users.saveLost(tx, row);
      if (action === 'retry') await this.dependents.releaseOutdated(tx, row);
      return { row, person: restated(applyResolve(row.person, action, row.context), row.context.now), fields };
    });
  }

  private async link(tx: Tx, row: PersonRow, platformUserId: string, fields: MoreFields): Promise<Change> {
    const { person: holder } = await this.users.describe(platformUserId, tx);
    if (holder && !(holder.kind === row.kind && holder.externalId === row.externalId)) {
      this.audit.about(holder.kind, holder.externalId);
      const detail = 'This platform user is linked to another person. Find out which of the two it belongs to.';
      throw new Problem('platform-user-taken', detail, { pointer: '/platformUserId', extensions: holder });
    }
    const isMissing = row.person.review === 'platform-user-missing' && row.platformUserId !== platformUserId;
    if (isMissing) await this.users.saveLost(tx, row);
    return { row, person: restated(applyLink(row.person, platformUserId, 'resolved'), row.context.now), fields };
  }

  /** One page of people, ordered by external id. Deleted people only with state `deleted`. */
  async page(kind: PersonKind, { cursor, limit, ...filter }: ClientsQuery): Promise<Page<PersonResponse>> {
    const [after = ''] = decodeCursor<[string]>(cursor, 'string') ?? [];
    const rows = await this.people.page(kind, filter, limit + 1, after);
    return pageOf(
      rows,
      limit,
      (row) => [row.externalId],
      (row) => this.view(row),
    );
  }

  /** Changes the desired or known state of a person, decides its next step again, and notifies. */
  private async change(work: (tx: Tx) => Promise<Change>): Promise<PersonResponse> {
    return this.prisma.transaction(async (tx) => {
      const { row, person = row.person, fields } = await work(tx);
      await this.people.update(tx, row, person, fields);
      const changed = await this.people.mustLock(tx, row.id);
      if (changed.dueAt !== null && changed.dueAt <= changed.context.now)
        this.prisma.afterCommit(tx, () => void this.queues.of('people').add(changed.id, true));
      return this.stored(tx, changed);
    });
  }

  /** Shows a changed person, and stores the audit entry of its change. @param outcome in the entry */
  async stored(tx: Tx, row: PersonRow, outcome?: string): Promise<PersonResponse> {
    const view = this.view(row);
    await this.audit.store(tx, outcome);
    return view;
  }

  private async providerIds(tx: Tx, externalIds: string[]): Promise<string[]> {
    if (externalIds.length === 0) return [];
    const named = await this.dependents.nameProviders(tx, externalIds);
    await this.formerIds.refuse('provider', externalIds, tx, (position) => `/providers/${position}`);
    return externalIds.map((externalId, position) => {
      const id = named.get(externalId);
      if (id) return id;
      const detail = `The provider at position ${position} is unknown or deleted. PUT /v1/providers/{externalId} first, or correct the id.`;
      throw new Problem('unknown-provider', detail, { pointer: `/providers/${position}` });
    });
  }

  /** Reads a person. @throws {Problem} 404; 409 `renamed` or `merged` */
  async read(key: PersonKey): Promise<PersonRow> {
    return this.found(key, await this.people.find(key));
  }

  /** Locks a person. @throws {Problem} 404; 409 `renamed` or `merged` */
  async mustLock(tx: Tx, key: PersonKey): Promise<PersonRow> {
    return this.found(key, await this.people.lock(tx, key), tx);
  }

  private async found(key: PersonKey, row: PersonRow | undefined, tx?: Tx): Promise<PersonRow> {
    if (!row) {
      await this.formerIds.refuse(key.kind, [key.externalId], tx);
      return this.unknown(key.kind);
    }
    this.audit.about(key.kind, row.externalId);
    return row;
  }

  /** @throws {Problem} 404 */
  unknown(kind: PersonKind): never {
    throw new Problem(`${kind}-not-found`, `No ${kind} has this external id. Check the id.`);
  }

  /** Decrypts a person for the EHR. */
  view(row: PersonRow): PersonResponse {
    this.audit.about(row.kind, row.externalId);
    return showPerson(row, this.seal, {
      isConfigured: this.contract.apiKey !== undefined,
      isHeld: this.sending.isHeldNow,
    });
  }
}

/** A person whose desired state was stored now, and which is due now. */
const restated = (person: Person, now: Date): Person => ({ ...person, wantedAt: now, dueAt: null });
