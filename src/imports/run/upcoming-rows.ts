import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import type { PersonKind } from '../../people/model/person.js';
import { type PersonKey, ProfileSeal } from '../../people/model/profile.js';
import { UpcomingPeople, type UpcomingPerson, type UpcomingSource } from '../../people/store/upcoming-people.js';
import { rowPlace } from '../upload/row-places.js';
import { OPEN_UPLOAD_LOCK } from '../upload/upload-connections.js';
import { ImportErasure } from './import-erasure.js';
import { RowStarter } from './row-starter.js';

/**
 * SQL of the rows of running imports that have not started and create or change someone.
 *
 * @param which condition of an index, evaluated first because the planner would otherwise read all rows that have not started
 */
const upcoming = (which: string): string =>
  `(SELECT * FROM import_rows WHERE ${which} OFFSET 0) AS r
   JOIN imports i ON i.id = r.import_id AND i.state IN ('running', 'paused')
   WHERE r.phase IS NOT NULL AND r.profile IS NOT NULL`;

/** Maximum people that a search adds. */
const SEARCH_MAX = 200;

interface Row {
  importId: string;
  rowNo: number;
  kind: PersonKind;
  externalId: string;
  profile: Buffer;
  providers: string[] | null;
  since: Date;
}

const COLUMNS = `r.import_id AS "importId", r.row_no AS "rowNo", r.kind, r.external_id AS "externalId", r.profile,
  r.providers, i.created_at AS since`;

/** The rows that imports have not started, for requests that name their people. */
@Injectable()
export class UpcomingRows implements UpcomingSource, OnModuleInit {
  constructor(
    private readonly prisma: PrismaService,
    private readonly database: Database,
    private readonly starter: RowStarter,
    private readonly erasure: ImportErasure,
    private readonly seal: ProfileSeal,
    private readonly upcoming: UpcomingPeople,
  ) {}

  onModuleInit(): void {
    this.upcoming.register(this);
  }

  async find({ kind, externalId }: PersonKey): Promise<UpcomingPerson | undefined> {
    const found = await this.database.pool.query<Row>(
      `SELECT ${COLUMNS} FROM ${upcoming('external_id = $2 AND profile IS NOT NULL')} AND r.kind = $1
       ORDER BY i.opened_at DESC LIMIT 1`,
      [kind, externalId],
    );
    return found.rows.map((row) => this.open(row))[0];
  }

  async search(email: Buffer[] | null, externalId: string | undefined): Promise<UpcomingPerson[]> {
    const which = `${email ? 'email_fingerprint = ANY ($1::bytea[])' : 'external_id = $2'} AND profile IS NOT NULL`;
    const { rows } = await this.database.pool.query<Row>(
      `SELECT ${COLUMNS} FROM ${upcoming(which)}
         AND ($1::bytea[] IS NULL OR r.email_fingerprint = ANY ($1)) AND ($2::text IS NULL OR r.external_id = $2)
       ORDER BY r.kind, r.external_id LIMIT $3`,
      [email, externalId ?? null, SEARCH_MAX],
    );
    return rows.map((row) => this.open(row));
  }

  /** Starts the rows of these people, and before them those of the providers that they name. */
  async start(tx: PoolClient, kind: PersonKind, externalIds: readonly string[]): Promise<void> {
    if (externalIds.length === 0) return;
    const { rows } = await tx.query<Pick<Row, 'importId' | 'rowNo' | 'providers'>>(
      `SELECT r.import_id AS "importId", r.row_no AS "rowNo", r.providers FROM ${upcoming('external_id = ANY ($2::text[]) AND profile IS NOT NULL')}
         AND r.kind = $1 ORDER BY i.opened_at, r.row_no`,
      [kind, externalIds],
    );
    if (rows.length === 0) return;
    if (kind === 'client')
      await this.start(
        tx,
        'provider',
        rows.flatMap(({ providers }) => providers ?? []),
      );
    for (const importId of new Set(rows.map((row) => row.importId))) {
      const rowNos = rows.flatMap((row) => (row.importId === importId ? row.rowNo : []));
      await this.starter.start(tx, importId, rowNos);
    }
  }

  /** Starts providers that some rows of an import name, because another import, which may be paused, has not. */
  async startProvidersOf(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<void> {
    const { rows } = await tx.query<{ id: string }>(
      `SELECT DISTINCT unnest(providers) AS id FROM import_rows
       WHERE import_id = $1 AND row_no = ANY ($2::int[]) AND kind = 'client' AND phase IS NOT NULL`,
      [importId, rowNos],
    );
    await this.start(
      tx,
      'provider',
      rows.map(({ id }) => id),
    );
  }

  /** Erases and skips the rows that name the person. While an upload is open, remembers the id for its rows, too. */
  async wasDeleted({ kind, externalId }: PersonKey): Promise<void> {
    await this.database.transaction(async (tx) => {
      // An upload holds this lock in shared mode until its rows are visible, so this comes before looking at them.
      await tx.query(
        `INSERT INTO deleted_ids (kind, external_id)
         SELECT $1, $2 WHERE NOT pg_try_advisory_xact_lock($3) OR EXISTS (SELECT FROM imports WHERE state = 'needs-mapping')
         ON CONFLICT (kind, external_id) DO UPDATE SET deleted_at = clock_timestamp()`,
        [kind, externalId, OPEN_UPLOAD_LOCK],
      );
      await this.erasure.erase(await this.prisma.in(tx), { kind, externalIds: [externalId], emails: [] });
    });
  }

  private open({ importId, rowNo, profile, providers, ...row }: Row): UpcomingPerson {
    return {
      ...row,
      providers: providers ?? [],
      profile: this.seal.openAt(rowPlace(importId, rowNo, 'profile'), profile),
    };
  }
}
