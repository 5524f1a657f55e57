import { Injectable } from '@nestjs/common';
import type { Tx } from '../../database/prisma.service.js';
import { needsClaim } from '../rules/person.js';
import { type PersonRow, strayClaims } from './person-row.js';

/** Maximum people of one round, because it is one transaction. */
const BATCH = 500;

/** Maximum events that one round looks at. */
const EVENTS = 100;

/** Sorts before every id. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

/** The codes of people who wait for someone else. */
const WAITING_CODES = ['provider-not-mirrored', 'email-taken', 'clients-still-listed'];

interface Event {
  id: bigint;
  personId: string;
  ofClients: boolean;
  afterClient: string | null;
}

/** A claim that was given up. */
type Released = { fingerprint: Uint8Array };

/**
 * Wakes people who wait for someone else: for a provider, an email, or the lists of clients. Whoever changes leaves an event
 * in its transaction, because hundreds of thousands may wait; each round of the feeder takes the next people.
 */
@Injectable()
export class DependentsRepository {
  /** The external id after which the next sweep starts. */
  private sweptUpTo = '';

  /** The clients of a provider may go on. */
  async requeueClientsOf(tx: Tx, providerId: string): Promise<void> {
    await tx.dependentRequeue.create({ data: { personId: providerId, ofClients: true } });
  }

  /** The deletion of these users may go on, because clients' lists on the platform have changed. */
  async requeueDeleting(tx: Tx, platformUserIds: readonly string[]): Promise<void> {
    if (platformUserIds.length === 0) return;
    await tx.$executeRaw`
      INSERT INTO dependent_requeues (person_id, of_clients)
      SELECT id, false FROM people WHERE state = 'deleting' AND platform_user_id = ANY (${[...platformUserIds]}::text[])`;
  }

  /**
   * Takes the next people who may go on, at most 500.
   *
   * @returns their ids, to decide about them
   */
  async next(tx: Tx): Promise<string[]> {
    const events = await tx.$queryRaw<Event[]>`
      SELECT id, person_id AS "personId", of_clients AS "ofClients", after_client AS "afterClient"
      FROM dependent_requeues ORDER BY id LIMIT ${EVENTS} FOR UPDATE SKIP LOCKED`;
    if (events.length === 0) return [];
    const clients = events.filter(({ ofClients }) => ofClients);
    const led = await tx.$queryRaw<{ eventId: bigint; clientId: string }[]>`
      SELECT e.id AS "eventId", c.client_id AS "clientId"
      FROM unnest(${clients.map(({ id }) => id)}::bigint[], ${clients.map(({ personId }) => personId)}::uuid[],
        ${clients.map(({ afterClient }) => afterClient ?? NO_ID)}::uuid[]) AS e(id, provider_id, after)
      CROSS JOIN LATERAL (SELECT client_id FROM client_providers
        WHERE provider_id = e.provider_id AND client_id > e.after ORDER BY client_id LIMIT ${BATCH}) AS c
      ORDER BY e.id, c.client_id LIMIT ${BATCH}`;
    // Only the last event of a full batch may have more clients, and none of those after it were looked at.
    const last = led.length === BATCH ? led.at(-1) : undefined;
    const ended = events.filter(({ id, ofClients }) => !ofClients || last === undefined || id < last.eventId);
    await tx.dependentRequeue.deleteMany({ where: { id: { in: ended.map(({ id }) => id) } } });
    if (last) {
      await tx.dependentRequeue.update({ where: { id: last.eventId }, data: { afterClient: last.clientId } });
    }
    const own = ended.filter(({ ofClients }) => !ofClients).map(({ personId }) => personId);
    return [...new Set([...own, ...led.map(({ clientId }) => clientId)])];
  }

  /**
   * The next of those who wait for someone else, all of them in turn, because the cause may have gone without an event.
   *
   * @returns their ids, at most 500, to decide about them
   */
  async overlooked(tx: Tx): Promise<string[]> {
    // Each kind and state by itself, in the order of their index.
    const slice = await tx.$queryRaw<{ id: string; externalId: string }[]>`
      SELECT p.id, p.external_id AS "externalId"
      FROM unnest(ARRAY['provider', 'client']::person_kind[]) AS k(kind), unnest(ARRAY['waiting', 'needs-review', 'deleting']) AS s(state)
      CROSS JOIN LATERAL (SELECT id, external_id FROM people
        WHERE kind = k.kind AND state = s.state AND error_code = ANY (${WAITING_CODES}::text[]) AND external_id > ${this.sweptUpTo}
        ORDER BY external_id LIMIT ${BATCH}) AS p
      ORDER BY p.external_id FETCH FIRST (${BATCH}) ROWS WITH TIES`;
    this.sweptUpTo = slice.length < BATCH ? '' : (slice.at(-1)?.externalId ?? '');
    return slice.map(({ id }) => id);
  }

  /**
   * Releases the claims that people no longer need, and wakes those who wait for them. Then claims the emails that the
   * people want: of several with one email, the first gets it. Updates their contexts.
   */
  async claimFor(tx: Tx, rows: readonly PersonRow[]): Promise<void> {
    const strays = rows.flatMap((row) => strayClaims(row).map((email) => ({ id: row.id, email })));
    if (strays.length > 0) {
      const free = await tx.$queryRaw<Released[]>`
        DELETE FROM email_claims c USING unnest(${strays.map(({ id }) => id)}::uuid[], ${strays.map(({ email }) => email)}::text[])
          AS n(id, email) WHERE c.fingerprint = decode(n.email, 'hex') AND c.person_id = n.id RETURNING fingerprint`;
      await this.requeueTaken(tx, free);
    }
    const claiming = rows.filter(({ person, context }) => needsClaim(person) && context.claim !== 'held');
    if (claiming.length === 0) return;
    // In the order of the emails, because two transactions may claim the same.
    const claimed = await tx.$queryRaw<{ id: string }[]>`
      INSERT INTO email_claims (fingerprint, person_id)
      SELECT DISTINCT ON (n.email) decode(n.email, 'hex'), n.id
      FROM unnest(${claiming.map(({ person }) => person.email)}::text[], ${claiming.map(({ id }) => id)}::uuid[])
        WITH ORDINALITY AS n(email, id, place)
      ORDER BY n.email, n.place ON CONFLICT (fingerprint) DO NOTHING RETURNING person_id AS id`;
    const holders = new Set(claimed.map(({ id }) => id));
    for (const { id, context } of claiming) context.claim = holders.has(id) ? 'held' : 'taken';
  }

  /**
   * Takes the email that a person wants from someone with an account for whom the EHR has stated another email since: an
   * operator may know that the platform has changed the account. Otherwise the lookup finds it. Updates the context.
   */
  async releaseOutdated(tx: Tx, { id, emailFingerprint, context }: PersonRow): Promise<void> {
    const released = await tx.$executeRaw`
      DELETE FROM email_claims c USING people h
      WHERE c.fingerprint = ${emailFingerprint} AND h.id = c.person_id AND h.id <> ${id}::uuid
        AND h.wanted AND h.platform_user_id IS NOT NULL
        AND h.email_fingerprint IS DISTINCT FROM c.fingerprint AND h.unsettled_email IS DISTINCT FROM c.fingerprint`;
    if (released > 0) context.claim = 'free';
  }

  /** Releases all claims of people who vanish. */
  async releaseAllClaims(tx: Tx, ids: readonly string[]): Promise<void> {
    const free = await tx.$queryRaw<Released[]>`
      DELETE FROM email_claims WHERE person_id = ANY (${[...ids]}::uuid[]) RETURNING fingerprint`;
    await this.requeueTaken(tx, free);
  }

  private async requeueTaken(tx: Tx, released: readonly Released[]): Promise<void> {
    if (released.length === 0) return;
    await tx.$executeRaw`
      INSERT INTO dependent_requeues (person_id, of_clients)
      SELECT id, false FROM people WHERE error_code = 'email-taken'
        AND email_fingerprint = ANY (${released.map(({ fingerprint }) => fingerprint)}::bytea[])`;
  }

  /** Replaces a client's desired list. @param providerIds in order, primary first */
  async wantProviders(tx: Tx, clientId: string, providerIds: string[]): Promise<void> {
    await tx.clientProvider.deleteMany({ where: { clientId } });
    const data = providerIds.map((providerId, position) => ({ clientId, providerId, position }));
    await tx.clientProvider.createMany({ data });
  }

  /**
   * Finds providers by their external ids for a client that someone waits for, and locks them against changes until the
   * transaction ends. Those that are due move before all imports.
   *
   * @returns ids by external id
   */
  async nameProviders(tx: Tx, externalIds: readonly string[]): Promise<Map<string, string>> {
    // Before the shared lock, because two clients that share one would each wait for the other to give it up.
    await tx.$executeRaw`
      UPDATE people SET urgent = true, import_id = NULL WHERE id = ANY (ARRAY(
        SELECT id FROM people WHERE kind = 'provider' AND external_id = ANY (${[...externalIds]}::text[])
          AND due_at IS NOT NULL AND (NOT urgent OR import_id IS NOT NULL) ORDER BY id FOR UPDATE))`;
    const rows = await tx.$queryRaw<{ id: string; externalId: string }[]>`
      SELECT id, external_id AS "externalId" FROM people
      WHERE kind = 'provider' AND external_id = ANY (${[...externalIds]}::text[]) AND wanted ORDER BY id FOR SHARE`;
    return new Map(rows.map((row) => [row.externalId, row.id]));
  }
}
