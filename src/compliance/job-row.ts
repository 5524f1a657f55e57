import { Injectable } from '@nestjs/common';
import type { ComplianceJob } from '../generated/prisma/client.js';
import { SealedColumn, Vault } from '../vault/vault.js';

/** A row of `compliance_jobs`; see `schema.prisma` for its columns. */
export type JobRow = ComplianceJob;

/** A locked row, with the database's time. */
export type LockedJob = JobRow & { now: Date };

/** Encrypts the texts of a job. */
@Injectable()
export class ComplianceSeal {
  readonly files: SealedColumn<string[]>;
  /** Why the platform rejected the submission. */
  readonly message: SealedColumn<string>;
  readonly result: SealedColumn<unknown>;

  constructor(vault: Vault) {
    this.files = new SealedColumn(vault, 'compliance_jobs', 'files');
    this.message = new SealedColumn(vault, 'compliance_jobs', 'message');
    this.result = new SealedColumn(vault, 'compliance_jobs', 'result');
  }
}
