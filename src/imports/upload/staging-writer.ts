import type { PoolClient } from 'pg';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind } from '../../people/model/person.js';
import type { ImportRequest } from '../model/import-types.js';
import type { ImportedPerson, ReadRow, ResourceReference } from '../parse/row/import-row.js';
import type { SealedBlock } from './raw-rows.repository.js';
import type { StagedReference, StagedRow, StagingRepository } from './staging.repository.js';

/** What is collected before it is stored: rows and references, and the characters of raw rows. */
const BATCH_ITEMS = 500;
const BATCH_CHARACTERS = 512 * 1024;

/** References between FHIR resources that are kept, for each row that may be. */
const REFERENCES_A_ROW = 10;

/** What is stored of a row is many times a short line: the limit on bytes alone would let one upload fill the disk. */
function tooMany(most: number, what: string): Problem {
  const detail = `An import may hold ${most.toLocaleString('en')} ${what} at most: split it (IMPORT_MAX_ROWS sets the limit).`;
  return new Problem(413, 'too-many-rows', detail);
}

/** Stores what is read of one import, one batch while the next is collected: constant memory. `flush` at the end. */
export class StagingWriter {
  private storing: Promise<void> = Promise.resolve();
  private rows: StagedRow[] = [];
  private references: StagedReference[] = [];
  private characters = 0;
  private rowNo = 0;
  private referenceNo = 0;

  /** @param tx used by nobody else until `flush` */
  constructor(
    private readonly repository: StagingRepository,
    private readonly tx: PoolClient,
    private readonly importId: string,
    private readonly request: Pick<ImportRequest, 'kind' | 'defaultProvider'>,
    private readonly mostRows: number,
  ) {}

  /** @param file its ordinal @param kind of the file's people, for a rejected row that does not say; null: of both */
  async row(file: number, row: ReadRow, kind: PersonKind | null = null): Promise<void> {
    const rowNo = ++this.rowNo;
    if (rowNo > this.mostRows) throw tooMany(this.mostRows, 'rows');
    if (row.ok) {
      const profileHash = this.repository.profileHash(row.person);
      this.rows.push({ rowNo, file, row, profileHash, providers: this.providersOf(row.person) });
    } else {
      this.rows.push({ rowNo, file, row, kind: row.kind ?? kind });
    }
    this.characters += row.raw.length;
    if (this.characters > BATCH_CHARACTERS || this.rows.length === BATCH_ITEMS) await this.handOver();
  }

  async reference(fact: ResourceReference): Promise<void> {
    const referenceNo = ++this.referenceNo;
    const most = this.mostRows * REFERENCES_A_ROW;
    if (referenceNo > most) throw tooMany(most, 'references');
    this.references.push({ ...fact, referenceNo });
    if (this.references.length === BATCH_ITEMS) await this.handOver();
  }

  /** Waits until all that was collected is stored. */
  async flush(): Promise<void> {
    await this.handOver();
    await this.storing;
  }

  /** Seals the batch, and stores it as soon as the one before is. @throws what that one met */
  private async handOver(): Promise<void> {
    const { rows, references } = this;
    [this.rows, this.references, this.characters] = [[], [], 0];
    const block = this.repository.sealRaw(this.importId, rows);
    await this.storing;
    this.storing = this.store(rows, block, references);
    this.storing.catch(() => undefined); // thrown by the next call
  }

  private async store(rows: StagedRow[], block: SealedBlock, references: StagedReference[]): Promise<void> {
    if (rows.length > 0) await this.repository.storeRows(this.tx, this.importId, rows, block);
    await this.repository.storeReferences(this.tx, this.importId, references);
  }

  /** An empty list of FHIR rows that came back as CSV says nothing: their providers are named by other resources. */
  private providersOf({ kind, providers }: ImportedPerson): readonly string[] | null {
    const { kind: importKind, defaultProvider } = this.request;
    if (kind === 'provider') return [];
    if (providers === undefined || (importKind === 'fhir' && providers.length === 0)) return null;
    return providers.length === 0 && defaultProvider !== undefined ? [defaultProvider] : providers;
  }
}
