import { Injectable } from '@nestjs/common';
import { Vault } from '../../vault/vault.js';
import type { ComplianceRequest } from './compliance-request.js';

/** Seals what a job was asked for and what came of it, each for its job. */
@Injectable()
export class ComplianceSeal {
  constructor(private readonly vault: Vault) {}

  sealRequest(job: string, request: ComplianceRequest): Buffer {
    return this.vault.seal(place(job, 'request'), JSON.stringify(request));
  }

  openRequest(job: string, sealed: Buffer): ComplianceRequest {
    return JSON.parse(this.vault.open(place(job, 'request'), sealed)) as ComplianceRequest;
  }

  sealResult(job: string, result: unknown): Buffer {
    return this.vault.seal(place(job, 'result'), JSON.stringify(result ?? null));
  }

  openResult(job: string, sealed: Buffer): unknown {
    return JSON.parse(this.vault.open(place(job, 'result'), sealed));
  }
}

function place(row: string, column: 'request' | 'result') {
  return { table: 'compliance_jobs', column, row };
}
