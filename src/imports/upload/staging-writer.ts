import type { PoolClient } from 'pg';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKind } from '../../people/model/person.js';
import type { ImportRequest } from '../model/import-types.js';
import type { SealedCells } from '../model/raw-rows.repository.js';
import type { AcceptedRow, ImportedPerson, ReadRow, ReferenceFact } from '../parse/row/import-row.js';
import type { StagedFact, StagedRow, StagingRepository } from './staging.repository.js';

/** What is collected before it is stored: rows and facts, and the characters of what the rows say. */
const BATCH_ITEMS = 500;
const BATCH_CHARACTERS = 512 * 1024;

/** References between FHIR resources that are kept, for each row that may be. */
const FACTS_A_ROW = 10;

/** What is stored of a row is many times a short line: the limit on bytes alone would let one upload fill the disk. */
function tooMany(most: number, what: string): Problem {
  const detail = `An import may hold ${most.toLocaleString('en')} ${what} at most: split it (IMPORT_MAX_ROWS sets the limit).`;
  return new Problem(413, 'too-many-rows', detail);
}

/**
 * Collects what the readers tell of one import and has it stored, one batch while the next is being collected: constant
 * memory. `flush` at the end.
 */
export class StagingWriter {
  private storing: Promise<void> = Promise.resolve();
  private rows: StagedRow[] = [];
  private facts: StagedFact[] = [];
  private characters = 0;
  private rowNo = 0;
  private referenceNo = 0;

  /** @param tx whose transaction the caller owns; nobody else uses the connection until `flush` */
  constructor(
    private readonly repository: StagingRepository,
    private readonly tx: PoolClient,
    private readonly importId: string,
    private readonly request: Pick<ImportRequest, 'kind' | 'defaultProvider'>,
    private readonly mostRows: number,
  ) {}

  /**
   * Adds a row.
   *
   * @param file ordinal of its file
   * @param kind of whom the file holds, for a rejected row that does not say; null: of both
   */
  async row(file: number, row: ReadRow, kind: PersonKind | null = null): Promise<void> {
    this.rowNo += 1;
    if (this.rowNo > this.mostRows) throw tooMany(this.mostRows, 'rows');
    this.rows.push(row.ok ? this.accepted(file, row) : { rowNo: this.rowNo, file, row, kind: row.kind ?? kind });
    this.characters += row.raw.length;
    if (this.characters > BATCH_CHARACTERS || this.rows.length === BATCH_ITEMS) await this.handOver();
  }

  /** Adds what a resource says beside the people. */
  async fact(fact: ReferenceFact): Promise<void> {
    this.referenceNo += 1;
    if (this.referenceNo > this.mostRows * FACTS_A_ROW) throw tooMany(this.mostRows * FACTS_A_ROW, 'references');
    this.facts.push({ ...fact, referenceNo: this.referenceNo });
    if (this.facts.length === BATCH_ITEMS) await this.handOver();
  }

  /** Waits until all that was collected is stored. */
  async flush(): Promise<void> {
    await this.handOver();
    await this.storing;
  }

  /** Seals the batch, and has it stored as soon as the one before is. @throws what that one met */
  private async handOver(): Promise<void> {
    const { rows, facts } = this;
    [this.rows, this.facts, this.characters] = [[], [], 0];
    const cells = this.repository.sealCells(this.importId, rows);
    await this.storing;
    this.storing = this.store(rows, cells, facts);
    this.storing.catch(() => undefined); // met by whoever waits for it
  }

  private async store(rows: StagedRow[], cells: SealedCells, facts: StagedFact[]): Promise<void> {
    if (rows.length > 0) await this.repository.storeRows(this.tx, this.importId, rows, cells);
    await this.repository.storeFacts(this.tx, this.importId, facts);
  }

  private accepted(file: number, row: AcceptedRow): StagedRow {
    const profileHash = this.repository.profileHash(row.person);
    return { rowNo: this.rowNo, file, row, profileHash, providers: this.providersOf(row.person) };
  }

  /** An empty list of FHIR rows that came back as CSV says nothing: their providers are named by other resources. */
  private providersOf({ kind, providers }: ImportedPerson): readonly string[] | null {
    const { kind: importKind, defaultProvider } = this.request;
    if (kind === 'provider') return [];
    if (providers === undefined || (importKind === 'fhir' && providers.length === 0)) return null;
    return providers.length === 0 && defaultProvider !== undefined ? [defaultProvider] : providers;
  }
}
