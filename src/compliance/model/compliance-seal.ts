import { Injectable } from '@nestjs/common';
import { SealedColumn } from '../../vault/sealed-column.js';
import { Vault } from '../../vault/vault.js';
import type { ComplianceRequest } from './job-row.js';

/** Seals what a job was asked for and what came of it. */
@Injectable()
export class ComplianceSeal {
  readonly request: SealedColumn<ComplianceRequest>;
  readonly result: SealedColumn<unknown>;

  constructor(vault: Vault) {
    this.request = new SealedColumn(vault, 'compliance_jobs', 'request');
    this.result = new SealedColumn(vault, 'compliance_jobs', 'result');
  }
}
