import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import type { PersonKey } from '../rules/profile.js';
import { ClientData } from './client-data.js';

/** Ids that the EHR deleted and never named, because rows of an earlier upload may name them. */
@Injectable()
export class DeletedIds {
  constructor(
    private readonly prisma: PrismaService,
    private readonly data: ClientData,
  ) {}

  /**
   * Erases the rows of imports that name the id, and stores the deletion as a person that no one sees: its version is 0. It is
   * dropped after the retention.
   *
   * @returns false if a person has the id by now
   */
  store(key: PersonKey): Promise<boolean> {
    const { kind, externalId } = key;
    return this.prisma.transaction(async (tx) => {
      const stored = await tx.$executeRaw`
        INSERT INTO people (id, kind, external_id, wanted, wanted_version, state)
        VALUES (${randomUUID()}::uuid, ${kind}::person_kind, ${externalId}, false, 0, 'deleted')
        ON CONFLICT (kind, external_id) DO UPDATE SET stated_at = clock_timestamp() WHERE people.wanted_version = 0`;
      if (stored > 0) await this.data.eraseUnknown(tx, key);
      return stored > 0;
    });
  }
}
