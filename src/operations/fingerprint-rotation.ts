import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { usableEmail } from '../imports/parse/row/email-text.js';
import type { RowCells } from '../imports/parse/row/import-row.js';
import { rowPlace } from '../imports/upload/row-places.js';
import { type Profile, ProfileSeal } from '../people/model/profile.js';
import { INSIGHT_COLUMNS, INSIGHT_PARTS, type InsightPart, SessionSeal } from '../sessions/model/session-seal.js';
import type { Fingerprints } from '../vault/fingerprints.js';
import { MAX_PASSES, PASS_PAUSE_MS, ROTATION_BATCH, type RotationUse, readByKeys } from '../vault/rotation.js';
import { openIfReadable } from '../vault/unreadable-value.js';
import type { Vault } from '../vault/vault.js';
import { FINGERPRINT_TABLES, type FingerprintTable } from './fingerprint-columns.js';

type Sql = Pick<Client, 'query'>;
type Row = Record<string, Buffer | string | number | null>;

/**
 * Recomputes the fingerprints of stored values with the first key, table by table. It can be stopped and started again at
 * any time. A locked row gets its turn in a later pass.
 */
export async function rotateFingerprints(
  sql: Sql,
  vault: Vault,
  fingerprints: Fingerprints,
  use: RotationUse,
): Promise<void> {
  await readByKeys(sql);
  const rotation = new FingerprintRotation(sql, vault, fingerprints, use);
  for (const name of Object.keys(FINGERPRINT_TABLES)) {
    for (let passes = 1; (await rotation.pass(name)) > 0 && passes < MAX_PASSES; passes++) await delay(PASS_PAUSE_MS);
  }
}

class FingerprintRotation {
  private readonly profiles: ProfileSeal;
  private readonly sessions: SessionSeal;
  private readonly unreadable = new Set<string>();

  constructor(
    private readonly sql: Sql,
    private readonly vault: Vault,
    private readonly fingerprints: Fingerprints,
    private readonly use: RotationUse,
  ) {
    this.profiles = new ProfileSeal(vault, fingerprints);
    this.sessions = new SessionSeal(vault, fingerprints);
  }

  /** @returns the number of rows that it skipped because they were locked */
  async pass(name: string): Promise<number> {
    const { read } = FINGERPRINT_TABLES[name] as FingerprintTable;
    if (read === undefined) return 0;
    let skipped = 0;
    for (let after: string[] | undefined; ; ) {
      const keys = await this.staleAfter(name, after);
      const locked = keys.length === 0 ? 0 : await this.rotateBatch(name, read, keys);
      skipped += keys.length - locked;
      after = keys.at(-1);
      if (keys.length < ROTATION_BATCH) return skipped;
    }
  }

  private async staleAfter(name: string, after: string[] | undefined): Promise<string[][]> {
    const { key, join = '' } = FINGERPRINT_TABLES[name] as FingerprintTable;
    const columns = Object.keys(key);
    const typed = Object.values(key).map((type, at) => `$${at + 2}::${type}`);
    const { rows } = await this.sql.query<{ key: string[] }>(
      `SELECT ARRAY[${columns.map((column) => `t.${column}::text`)}] AS key FROM ${name} t ${join}
       WHERE ${this.isStale(name)} ${after ? `AND (${columns.map((column) => `t.${column}`)}) > (${typed})` : ''}
       ORDER BY ${columns.map((column) => `t.${column}`)} LIMIT ${ROTATION_BATCH}`,
      [this.fingerprints.header, ...(after ?? [])],
    );
    return rows.map((row) => row.key);
  }

  /** SQL condition: a fingerprint of row `t` can be recomputed, and $1 is not its header. */
  private isStale(name: string): string {
    const isStale = (column: string) => `substring(${column} FOR ${this.fingerprints.header.length}) <> $1::bytea`;
    const { columns } = FINGERPRINT_TABLES[name] as FingerprintTable;
    const own = Object.entries(columns).map(
      ([column, { source }]) => `(${isStale(`t.${column}`)} AND ${source} IS NOT NULL)`,
    );
    // Claims have their own table, but are recomputed with their person, whose row protects them.
    const claims = `(SELECT true FROM email_claims c WHERE c.person_id = t.id AND ${isStale('c.fingerprint')} LIMIT 1) IS NOT NULL`;
    return `(${[...own, ...(name === 'people' ? [claims] : [])].join(' OR ')})`;
  }

  /** Recomputes the fingerprints of rows, in one transaction. @returns the number of rows that were free */
  private async rotateBatch(name: string, read: string, keys: readonly string[][]): Promise<number> {
    const { key, columns, join = '' } = FINGERPRINT_TABLES[name] as FingerprintTable;
    const types = Object.values(key);
    const isRow = Object.keys(key).map((column, at) => `t.${column} = g.k${at}`);
    await this.sql.query('BEGIN');
    try {
      const { rows } = await this.sql.query<Row>(
        `SELECT ${read}, ${Object.keys(columns).map((column) => `t.${column}`)}
         FROM unnest(${types.map((type, at) => `$${at + 1}::text[]::${type}[]`)}) AS g(${types.map((_, at) => `k${at}`)})
         JOIN ${name} t ON ${isRow.join(' AND ')} ${join} FOR NO KEY UPDATE OF t SKIP LOCKED`,
        types.map((_, at) => keys.map((one) => one[at])),
      );
      await this.storeRecomputed(name, rows);
      if (name === 'people') await this.rotateClaims(rows);
      await this.sql.query('COMMIT');
      this.use.onProgress(rows.length);
      return rows.length;
    } catch (error) {
      await this.sql.query('ROLLBACK');
      if ((error as { code?: string }).code === '40P01') return 0; // a deadlock, so these rows get their turn later
      throw error;
    }
  }

  private async storeRecomputed(name: string, rows: readonly Row[]): Promise<void> {
    const { key, columns } = FINGERPRINT_TABLES[name] as FingerprintTable;
    const made = rows.flatMap((row) => {
      const fresh = openIfReadable(() => this.recomputed(name, row));
      if (!fresh) this.report(name, row);
      return fresh ? [{ row, fresh }] : [];
    });
    const [ids, names] = [Object.keys(key), Object.keys(columns)];
    const types = [...Object.values(key), ...names.map(() => 'bytea')];
    await this.sql.query(
      `UPDATE ${name} t SET ${names.map((column) => `${column} = CASE WHEN t.${column} IS NOT NULL THEN coalesce(g.${column}, t.${column}) END`)}
         ${name === 'people' ? CLAIM_AGAIN : ''}
       FROM unnest(${types.map((type, at) => `$${at + 1}::${type}[]`)}) AS g(${ids.map((_, at) => `k${at}`)}, ${names})
       WHERE ${ids.map((column, at) => `t.${column} = g.k${at}`).join(' AND ')}`,
      [
        ...ids.map((column) => made.map(({ row }) => row[column])),
        ...names.map((column) => made.map(({ fresh }) => fresh[column] ?? null)),
      ],
    );
  }

  /** The fingerprints of a row by the first key. */
  private recomputed(name: string, row: Row): Partial<Record<string, Buffer>> {
    const { profiles } = this;
    if (row.cells instanceof Buffer) return { email_fingerprint: this.ofCells(row, row.cells) };
    if (name === 'session_documents') return { fingerprint: this.ofNotes(row) };
    if (name === 'session_insights') return { fingerprint: this.ofInsights(row) };
    const opened = (column: string): Profile | undefined => {
      const sealed = row[column];
      if (!(sealed instanceof Buffer)) return undefined;
      const isRow = name === 'import_rows';
      if (!isRow) return profiles.open({ id: String(row.id) }, sealed);
      return profiles.openAt(rowPlace(String(row.import_id), Number(row.row_no), 'profile'), sealed);
    };
    const [profile, attempted] = [opened('profile'), opened('attempt_profile')];
    return {
      ...(profile && { profile_hash: profiles.hash(profile) }),
      ...(profile?.email && { email_fingerprint: profiles.emailFingerprint(profile.email) ?? undefined }),
      ...(attempted?.email && { attempt_email: profiles.emailFingerprint(attempted.email) ?? undefined }),
    };
  }

  /** A rejected row keeps the fingerprint of its email, as `StagingRepository` makes it. */
  private ofCells({ import_id, row_no }: Row, sealed: Buffer): Buffer | undefined {
    const place = rowPlace(String(import_id), Number(row_no), 'cells');
    const { email = '' } = JSON.parse(this.vault.open(place, sealed)) as RowCells;
    return this.profiles.emailFingerprint(usableEmail(email) || null) ?? undefined;
  }

  private ofNotes({ id, session, revision, notes }: Row): Buffer | undefined {
    if (!(notes instanceof Buffer)) return undefined;
    const place = { session: String(session), document: String(id), revision: Number(revision) };
    return this.sessions.fingerprintNotes(this.sessions.openNotes(place, notes));
  }

  /** An answer may lack parts that an earlier one had. Its own are those that make the stored fingerprint. */
  private ofInsights(row: Row): Buffer | undefined {
    const { sessions } = this;
    const stored = row.fingerprint as Buffer;
    const values = INSIGHT_PARTS.map((part): [InsightPart, unknown] => [
      part,
      sessions.insights[part].open(String(row.session), row[INSIGHT_COLUMNS[part]] as Buffer | null),
    ]);
    for (let chosen = 2 ** values.length - 1; chosen > 0; chosen--) {
      const parts = values.filter((_, at) => chosen & (1 << at));
      if (sessions.fingerprintInsights(parts, stored).equals(stored)) return sessions.fingerprintInsights(parts);
    }
    return undefined;
  }

  /** Recomputes the claims of locked people, in the order in which claims are made. */
  private async rotateClaims(people: readonly Row[]): Promise<void> {
    const { rows } = await this.sql.query<{ fingerprint: Buffer; personId: string }>(
      'SELECT fingerprint, person_id AS "personId" FROM email_claims WHERE person_id = ANY ($1::uuid[])',
      [people.map(({ id }) => id)],
    );
    const emails = new Map(people.map((row) => [String(row.id), this.emailsOf(row)]));
    const renewed = rows.flatMap(({ fingerprint, personId }) => {
      if (this.fingerprints.isCurrent(fingerprint)) return [];
      const all = emails.get(personId)?.find((one) => one.some((print) => print.equals(fingerprint)));
      return all?.[0] ? { old: fingerprint, fresh: all[0], personId } : [];
    });
    if (renewed.length === 0) return;
    const locked = renewed.flatMap(({ old, fresh, personId }) => [
      { print: old, personId },
      { print: fresh, personId },
    ]);
    await this.sql.query(
      `INSERT INTO email_claims (fingerprint, person_id)
       SELECT DISTINCT ON (print) * FROM unnest($1::bytea[], $2::uuid[]) AS n(print, person) ORDER BY print
       ON CONFLICT (fingerprint) DO UPDATE SET fingerprint = excluded.fingerprint`,
      [locked.map(({ print }) => print), locked.map(({ personId }) => personId)],
    );
    const remove = 'DELETE FROM email_claims WHERE fingerprint = ANY ($1::bytea[])';
    await this.sql.query(remove, [renewed.map(({ old }) => old)]);
  }

  /** The fingerprints of each stored email of a person by all accepted keys, the first key's first. */
  private emailsOf(row: Row): Buffer[][] {
    return ['profile', 'applied_profile', 'attempt_profile'].flatMap((column) => {
      const sealed = row[column];
      if (!(sealed instanceof Buffer)) return [];
      const profile = openIfReadable(() => this.profiles.open({ id: String(row.id) }, sealed));
      return profile?.email ? [this.profiles.emailFingerprints(profile.email)] : [];
    });
  }

  private report(table: string, row: Row): void {
    const { key, columns } = FINGERPRINT_TABLES[table] as FingerprintTable;
    const [column = ''] = Object.keys(columns);
    const name = Object.keys(key)
      .map((one) => row[one])
      .join('/');
    if (this.unreadable.has(`${table} ${name}`)) return;
    this.unreadable.add(`${table} ${name}`);
    this.use.onUnreadable({ table, column, row: name });
  }
}

/** SQL assignments for a person that waits for its email: the claim that it waits for may have got another fingerprint. */
const CLAIM_AGAIN = `, due_at = CASE WHEN t.error_code = 'email-taken' THEN clock_timestamp() ELSE t.due_at END,
  step = CASE WHEN t.error_code = 'email-taken' THEN NULL ELSE t.step END`;
