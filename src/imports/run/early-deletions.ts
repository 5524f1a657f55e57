import { Injectable, type OnModuleInit } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { PeopleService } from '../../people/api/people.service.js';
import type { PersonKey } from '../../people/rules/profile.js';
import { OPEN_UPLOAD_LOCK } from '../upload/upload-connections.js';
import { ImportErasure } from './import-erasure.js';

/** Deletions of people whom the EHR has named only in files that are being read, or were not applied yet. */
@Injectable()
export class EarlyDeletions implements OnModuleInit {
  constructor(
    private readonly prisma: PrismaService,
    private readonly erasure: ImportErasure,
    private readonly people: PeopleService,
  ) {}

  onModuleInit(): void {
    this.people.onUnknownDeletion = (key) => this.wasDeleted(key);
  }

  /** Erases and skips the rows that name the person. While an upload is open, remembers the id for its rows, too. */
  private async wasDeleted({ kind, externalId }: PersonKey): Promise<void> {
    await this.prisma.transaction(async (tx) => {
      // An upload holds this lock in shared mode until its rows are visible, so this comes before looking at them.
      await tx.$executeRaw`
        INSERT INTO deleted_ids (kind, external_id)
        SELECT ${kind}::person_kind, ${externalId}
        WHERE NOT pg_try_advisory_xact_lock(${OPEN_UPLOAD_LOCK}) OR EXISTS (SELECT FROM imports WHERE state = 'needs-mapping')
        ON CONFLICT (kind, external_id) DO UPDATE SET deleted_at = clock_timestamp()`;
      await this.erasure.erase(tx, { kind, externalIds: [externalId], emails: [] });
    });
  }
}
