import { Global, Module } from '@nestjs/common';
import { Audit } from './audit.js';
import { AuditRepository } from './audit.repository.js';
import { AuditHeads } from './audit-heads.js';
import { AuditLinker } from './audit-linker.js';
import { DailyBytes } from './daily-bytes.js';

/** Records who did what, and who saw what. */
@Global()
@Module({
  providers: [Audit, AuditHeads, AuditLinker, AuditRepository, DailyBytes],
  exports: [Audit, AuditLinker, AuditRepository, DailyBytes],
})
export class AuditModule {}
