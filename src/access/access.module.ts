import { Global, Module } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, DiscoveryModule } from '@nestjs/core';
import { RequestGate } from '../http/request-gate.js';
import { AccessGuard } from './access.guard.js';
import { Admission } from './admission.js';
import { ApiKeysController } from './api-keys.controller.js';
import { ApiKeys } from './api-keys.js';
import { ApiKeysRepository } from './api-keys.repository.js';
import { AuditController } from './audit.controller.js';
import { AuditInterceptor } from './audit.interceptor.js';
import { Audit } from './audit.js';
import { AuditRepository } from './audit.repository.js';
import { EventStreams } from './event-streams.js';
import { Idempotency } from './idempotency.js';
import { IdempotencyRepository } from './idempotency.repository.js';

/** Who may do what, who did what, and what was asked for twice. */
@Global()
@Module({
  imports: [DiscoveryModule],
  controllers: [ApiKeysController, AuditController],
  providers: [
    Admission,
    { provide: RequestGate, useExisting: Admission },
    ApiKeys,
    ApiKeysRepository,
    Audit,
    AuditRepository,
    EventStreams,
    Idempotency,
    IdempotencyRepository,
    { provide: APP_GUARD, useClass: AccessGuard },
    { provide: APP_INTERCEPTOR, useClass: AuditInterceptor },
  ],
  exports: [ApiKeys, Audit, EventStreams, Idempotency],
})
export class AccessModule {}
