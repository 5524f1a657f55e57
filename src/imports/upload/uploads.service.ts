import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../../audit/audit.js';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { PrismaService } from '../../database/prisma.service.js';
import { FormerIdsRepository } from '../../people/store/former-ids.repository.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import type { ImportRequest } from '../model/import.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { unknownImport, wrongState } from '../model/problems.js';
import { RowCorrector } from './row-corrector.js';
import { StagingRepository } from './staging.repository.js';
import { StoredRecords } from './stored-records.repository.js';
import { UploadConnectionPool } from './upload-connections.js';
import { UploadReader } from './upload-reader.js';
import type { UploadedFile } from './uploaded-files.js';

/** Reads uploads into imports. */
@Injectable()
export class UploadsService {
  constructor(
    private readonly prisma: PrismaService,
    private readonly env: Env,
    private readonly clock: Clock,
    private readonly imports: ImportsRepository,
    private readonly staging: StagingRepository,
    private readonly records: StoredRecords,
    private readonly corrector: RowCorrector,
    private readonly uploads: UploadConnectionPool,
    private readonly formerIds: FormerIdsRepository,
    private readonly queues: WorkQueues,
    private readonly audit: Audit,
  ) {}

  /**
   * Reads an import to its end and stores its rows, in bounded memory and in one transaction: an upload that is interrupted
   * leaves nothing. Planning follows in the background.
   *
   * @param id the same for every attempt of one request; what an earlier one has read is not read again
   * @throws {Problem} 404 for `correctionOf`; 422 if a file as a whole cannot be read, 409 `renamed` for the default provider, 413, 415, 503
   */
  async create(id: string, request: ImportRequest, files: AsyncIterable<UploadedFile>): Promise<void> {
    const named = request.defaultProvider === undefined ? [] : [request.defaultProvider];
    await this.formerIds.refuse('provider', named, undefined, () => '/defaultProvider');
    const { correctionOf } = request;
    if (correctionOf !== undefined && !(await this.imports.find(correctionOf))) throw unknownImport();
    await this.uploads.transaction(async (tx) => {
      if (await this.imports.open(tx, id, request)) {
        this.audit.about('import', id);
        const reader = this.reader(tx, id, request);
        for await (const file of files) await reader.file(file);
        await this.imports.wasRead(tx, id, await reader.end());
        await this.audit.store(await this.prisma.in(tx));
      } else for await (const file of files) for await (const _ of file.content);
    });
    void this.queues.of('imports').add(id);
  }

  /**
   * Reads the stored records of an import with the chosen columns. Files that still have a question keep waiting.
   *
   * @param columns by field, or by kind and field
   * @throws {Problem} 404; 409 `wrong-state`; 422 `unknown-column`
   */
  async map(id: string, columns: Record<string, string>): Promise<void> {
    await this.uploads.transaction(async (tx) => {
      const record = await this.imports.lock(tx, id);
      if (!record) throw unknownImport();
      this.audit.about('import', id);
      if (record.state !== 'needs-mapping') throw wrongState(record.state, ['needs-mapping']);
      const { rows } = await tx.query<{ last: number }>(
        'SELECT coalesce(max(row_no), 0) AS last FROM import_rows WHERE import_id = $1',
        [id],
      );
      const { kind: _, defaultProvider, ...rest } = record;
      const request: ImportRequest = {
        ...{ mode: rest.mode, dryRun: rest.dryRun, idSystems: rest.idSystems, columns },
        ...(defaultProvider !== null && { defaultProvider }),
      };
      const reader = this.reader(tx, id, request, rows[0]?.last);
      const read = await reader.mapped(this.imports.filesOf(record));
      await this.imports.wasRead(tx, id, { ...read, mentioned: [...record.mentioned, ...read.mentioned] });
      await this.audit.store(await this.prisma.in(tx));
    });
    void this.queues.of('imports').add(id);
  }

  private reader(tx: PoolClient, id: string, request: ImportRequest, lastRow = 0): UploadReader {
    const { IMPORT_MAX_ROWS } = this.env;
    return new UploadReader(
      this.staging,
      this.records,
      this.corrector,
      tx,
      id,
      request,
      this.clock.now(),
      IMPORT_MAX_ROWS,
      lastRow,
    );
  }
}
