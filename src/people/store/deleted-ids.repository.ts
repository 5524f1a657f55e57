import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { LOCKS } from '../../database/advisory-locks.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { PersonKey } from '../rules/profile.js';
import { ClientData } from './client-data.js';

/** States of an import that may still create or change people. */
export const OPEN_IMPORT_STATES = ['staging', 'needs-mapping', 'planned', 'running', 'paused'] as const;

/** Ids that the EHR deleted and never named, because rows of an earlier upload may name them. */
@Injectable()
export class DeletedIds {
  constructor(
    private readonly prisma: PrismaService,
    private readonly data: ClientData,
  ) {}

  /**
   * Erases the rows of imports that name the id. While an import may still create a person, stores the deletion as a person
   * that no one sees: its version is 0. Otherwise it stores nothing, because a mistaken id may be a name.
   *
   * @returns false if a person has the id by now
   */
  store(key: PersonKey): Promise<boolean> {
    const { kind, externalId } = key;
    return this.prisma.transaction(async (tx) => {
      const isFree = (await this.mayBeNamed(tx))
        ? (await tx.$executeRaw`
            INSERT INTO people (id, kind, external_id, wanted, wanted_version, state)
            VALUES (${randomUUID()}::uuid, ${kind}::person_kind, ${externalId}, false, 0, 'deleted')
            ON CONFLICT (kind, external_id) DO UPDATE SET stated_at = clock_timestamp() WHERE people.wanted_version = 0`) >
          0
        : (await tx.person.count({ where: { kind, externalId, wantedVersion: { gt: 0 } } })) === 0;
      if (isFree) await this.data.eraseUnknown(tx, key);
      return isFree;
    });
  }

  /** True while an upload or an import is open. An upload keeps its lock until its import is visible. */
  private async mayBeNamed(tx: Tx): Promise<boolean> {
    const [lock] = await tx.$queryRaw<[{ isAlone: boolean }]>`
      SELECT pg_try_advisory_xact_lock(${LOCKS.openUploads}) AS "isAlone"`;
    return !lock.isAlone || (await tx.import.count({ where: { state: { in: [...OPEN_IMPORT_STATES] } } })) > 0;
  }
}
