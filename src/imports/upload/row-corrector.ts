import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { profileOf } from '../../people/rules/person-field-rules.js';
import { ProfileSeal } from '../../people/rules/profile.js';
import { usableEmail } from '../parse/row/email-text.js';
import type { ImportedPerson, RowCells } from '../parse/row/import-row.js';
import { type Rejection, rejection } from '../parse/row/rejection.js';
import { candidateOf, isLinkOnly, providerIds, validatePerson } from '../parse/row/validate-person.js';
import type { KnownProviders } from './known-providers.js';
import { rowPlace } from './row-places.js';
import { StagingRepository } from './staging.repository.js';
import { unknownProvider } from './staging-writer.js';

/** Rejected rows per statement. */
const BATCH = 1_000;

/** Checks rejected rows again: after a correction, or once providers are known that the file names only later. */
@Injectable()
export class RowCorrector {
  constructor(
    private readonly staging: StagingRepository,
    private readonly seal: ProfileSeal,
  ) {}

  /** Checks a row with other cells, and stores it as accepted or rejected. */
  async correct(
    tx: PoolClient,
    importId: string,
    rowNo: number,
    cells: RowCells,
    providers: KnownProviders,
  ): Promise<void> {
    const checked = await this.check(await this.completed(tx, cells), providers);
    if ('code' in checked) await this.reject(tx, importId, rowNo, cells, checked);
    else await this.accept(tx, importId, rowNo, checked);
  }

  /** Accepts rows of an import whose providers are known by now. */
  async recheckProviders(tx: PoolClient, importId: string, providers: KnownProviders): Promise<void> {
    for (let after = 0; ; ) {
      const { rows } = await tx.query<{ rowNo: number; cells: Buffer }>(
        `SELECT row_no AS "rowNo", cells FROM import_rows
         WHERE import_id = $1 AND row_no > $2 AND code = 'unknown-provider' AND outcome = 'rejected' AND cells IS NOT NULL
         ORDER BY row_no LIMIT $3`,
        [importId, after, BATCH],
      );
      for (const { rowNo, cells } of rows) {
        const checked = await this.check(this.staging.openCells(importId, rowNo, cells), providers);
        if (!('code' in checked)) await this.accept(tx, importId, rowNo, checked);
        after = rowNo;
      }
      if (rows.length < BATCH) return;
    }
  }

  /** The texts of a row that only links its person, with the stored names and email. */
  private async completed(tx: PoolClient, cells: RowCells): Promise<RowCells> {
    const { kind = '', externalId = '' } = cells;
    if (!isLinkOnly(cells) || (kind !== 'provider' && kind !== 'client')) return cells;
    const profile = (await this.staging.knownProfiles(tx, kind, [externalId])).get(externalId);
    return { ...cells, ...profile, ...profileOf(cells) };
  }

  private async check(cells: RowCells, providers: KnownProviders): Promise<ImportedPerson | Rejection> {
    const { kind, externalId = '', providers: named = '' } = cells;
    if (kind !== 'provider' && kind !== 'client') {
      return rejection('wrong-type', { field: 'kind', expected: 'provider or client' });
    }
    const texts = { ...cells, externalId: externalId.trim() };
    const person = validatePerson(candidateOf(texts, kind, named === '' ? undefined : providerIds(cells)));
    if ('code' in person) return person;
    await providers.lookUp(person.providers ?? []);
    const unknown = person.providers?.find((id) => providers.of(id) !== 'known');
    if (unknown === undefined) {
      return {
        ...person,
        ...(person.providers && { providers: person.providers.map((id) => providers.spelling(id)) }),
      };
    }
    const status = providers.of(unknown);
    return status === 'renamed' ? rejection('renamed', { field: 'providers' }) : unknownProvider(unknown, status);
  }

  private async accept(tx: PoolClient, importId: string, rowNo: number, person: ImportedPerson): Promise<void> {
    const { kind, externalId, providers, platformUserId } = person;
    const profile = profileOf(person);
    const email = this.seal.emailFingerprint(profile.email);
    await tx.query(
      `UPDATE import_rows SET says = 'person', kind = $3, external_id = $4, profile = $5, cells = NULL,
         profile_hash = $6, email_fingerprint = $7, providers = $8, platform_user_id = $9,
         outcome = 'pending', planned = NULL, code = NULL, field = NULL, hint = NULL
       WHERE import_id = $1 AND row_no = $2`,
      [
        ...[importId, rowNo, kind, externalId, this.seal.sealAt(rowPlace(importId, rowNo, 'profile'), profile)],
        ...[this.seal.hash(profile), email, providers ?? null, platformUserId ?? null],
      ],
    );
  }

  private async reject(
    tx: PoolClient,
    importId: string,
    rowNo: number,
    cells: RowCells,
    { code, field, hint }: Rejection,
  ): Promise<void> {
    await tx.query(
      `UPDATE import_rows SET says = 'rejected', profile = NULL, cells = $3, outcome = 'rejected', planned = 'rejected',
         code = $4, field = $5, hint = $6, email_fingerprint = $7
       WHERE import_id = $1 AND row_no = $2`,
      [
        ...[importId, rowNo, this.staging.sealCells(importId, rowNo, cells), code, field ?? null, hint],
        this.seal.emailFingerprint(usableEmail(cells.email ?? '') || undefined),
      ],
    );
  }
}
