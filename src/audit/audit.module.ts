import { Global, Module } from '@nestjs/common';
import { Audit } from './audit.js';
import { AuditRepository } from './audit.repository.js';
import { AuditHeads } from './audit-heads.js';
import { AuditLinker } from './audit-linker.js';

/** Records who did what, and who saw what. */
@Global()
@Module({
  providers: [Audit, AuditHeads, AuditLinker, AuditRepository],
  exports: [Audit, AuditLinker, AuditRepository],
})
export class AuditModule {}
