import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import type { PersonKind } from '../../people/model/person.js';
import { type Profile, ProfileSeal } from '../../people/model/profile.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { parseRaw } from '../parse/row/import-row.js';
import type { ImportRowRecord } from '../run/outcomes.repository.js';
import { profilePlace } from '../upload/row-places.js';
import { StagingRepository } from '../upload/staging.repository.js';

/** Rows that are read at once. */
const PAGE = 200;

interface MentionRow extends Pick<ImportRowRecord, 'rowNo' | 'file' | 'line' | 'outcome' | 'code' | 'field' | 'hint'> {
  import: string;
  createdAt: Date;
  files: Uint8Array<ArrayBuffer> | null;
  profile: Buffer | null;
  /** Null: nothing was wanted of the person before. */
  before: Buffer | null;
  personId: string;
}

/** A row of an import that names a person, and what is kept of what it said. */
interface ImportMention extends Omit<MentionRow, 'rowNo' | 'file' | 'files' | 'profile' | 'before' | 'personId'> {
  file: string;
  profile: Profile | null;
  /** What was wanted before the row was applied. */
  before: Profile | null;
  /** The cells, or the text, of a row that is or may yet be rejected. */
  read: string[] | string | null;
}

/** A look through all rows: it is rare, and an index of them all would be paid for by every import. */
const MENTIONS = `
  SELECT r.import_id AS import, i.created_at AS "createdAt", i.files, r.row_no AS "rowNo", r.file, r.line, r.outcome,
    r.code, r.field, r.hint, r.profile, r.was_profile AS before, r.person_id AS "personId"
  FROM import_rows r JOIN imports i ON i.id = r.import_id
  WHERE r.external_id = ANY ($2::text[]) AND (r.kind = $1 OR r.kind IS NULL) AND (r.import_id, r.row_no) > ($3, $4)
  ORDER BY r.import_id, r.row_no LIMIT ${PAGE}`;

/** Where imports named a person. */
@Injectable()
export class ImportMentions {
  constructor(
    private readonly database: Database,
    private readonly imports: ImportsRepository,
    private readonly staging: StagingRepository,
    private readonly seal: ProfileSeal,
  ) {}

  /** The rows of all imports that named a person. @param ids all current and former ids */
  async *of(kind: PersonKind, ids: readonly string[]): AsyncGenerator<ImportMention> {
    let after = ['00000000-0000-0000-0000-000000000000', 0] as [string, number];
    let rows: MentionRow[];
    do {
      ({ rows } = await this.database.pool.query<MentionRow>(MENTIONS, [kind, ids, ...after]));
      for (const row of rows) {
        yield await this.show(row);
        after = [row.import, row.rowNo];
      }
    } while (rows.length === PAGE);
  }

  private async show(row: MentionRow): Promise<ImportMention> {
    const { rowNo, file, files, profile, before, personId, ...shown } = row;
    const raw = (await this.staging.blockOf(row.import, rowNo))?.get(rowNo)?.raw;
    const { cells, text } = raw === undefined ? { cells: [], text: '' } : parseRaw(raw);
    return {
      ...shown,
      file: this.imports.filesOf({ id: row.import, files })[file - 1]?.name ?? '',
      profile: profile && this.seal.openAt(profilePlace(row.import, rowNo), profile),
      before: before && this.seal.open({ id: personId }, before),
      read: text === '' ? (cells.length > 0 ? cells : null) : text,
    };
  }
}
