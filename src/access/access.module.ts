import { Global, Module } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, DiscoveryModule } from '@nestjs/core';
import { RequestGate } from '../http/server/edge-hooks.js';
import { AuditController } from './audit/audit.controller.js';
import { AuditInterceptor } from './audit/audit.interceptor.js';
import { Audit } from './audit/audit.js';
import { AuditRepository } from './audit/audit.repository.js';
import { AuditSearches } from './audit/audit-searches.js';
import { AccessGuard, Admission } from './guard/admission.js';
import { ClinicalTextInterceptor } from './guard/clinical-text.interceptor.js';
import { EventStreams } from './guard/event-streams.js';
import { FailedAttempts } from './guard/failed-attempts.js';
import { FailedAttemptsRepository } from './guard/failed-attempts.repository.js';
import { WaitedReadsInterceptor } from './guard/waited-reads.interceptor.js';
import { Idempotency } from './idempotency/idempotency.js';
import { ApiKeysController } from './keys/api-keys.controller.js';
import { ApiKeys } from './keys/api-keys.js';

/** Who may do what, who did what, and what was asked for twice. */
@Global()
@Module({
  imports: [DiscoveryModule],
  controllers: [ApiKeysController, AuditController],
  providers: [
    Admission,
    { provide: RequestGate, useExisting: Admission },
    ApiKeys,
    Audit,
    AuditRepository,
    AuditSearches,
    EventStreams,
    FailedAttempts,
    FailedAttemptsRepository,
    Idempotency,
    { provide: APP_GUARD, useClass: AccessGuard },
    { provide: APP_INTERCEPTOR, useClass: AuditInterceptor },
    { provide: APP_INTERCEPTOR, useClass: WaitedReadsInterceptor },
    { provide: APP_INTERCEPTOR, useClass: ClinicalTextInterceptor },
  ],
  exports: [ApiKeys, Audit, EventStreams, Idempotency],
})
export class AccessModule {}
