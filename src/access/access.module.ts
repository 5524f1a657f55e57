import { Global, Module } from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, DiscoveryModule } from '@nestjs/core';
import { AuditInterceptor } from '../audit/audit.interceptor.js';
import { RequestGate } from '../http/server/request-gate.js';
import { AuditController } from './audit.controller.js';
import { AccessGate, AccessGuard } from './guard/access-gate.js';
import { Callers } from './guard/callers.js';
import { GrantsHealth } from './guard/grants-health.js';
import { StreamedAnswers } from './guard/streamed-answers.js';
import { AnswerVisibility, VisibilityInterceptor } from './guard/visible-to.js';
import { WaitedReadsInterceptor } from './guard/waited-reads.interceptor.js';
import { ApiKeysController } from './keys/api-keys.controller.js';
import { ApiKeysRepository } from './keys/api-keys.repository.js';
import { ApiKeysService } from './keys/api-keys.service.js';
import { KnownKeys } from './keys/known-keys.js';
import { BrowserSessionController } from './sign-in/browser-session.controller.js';
import { BrowserSessionsRepository } from './sign-in/browser-sessions.repository.js';
import { BrowserSessionsService } from './sign-in/browser-sessions.service.js';
import { OpenIdConnect } from './sign-in/openid-connect.js';
import { SignInController } from './sign-in/sign-in.controller.js';

/** Decides who may do what, and see what. */
@Global()
@Module({
  imports: [DiscoveryModule],
  controllers: [ApiKeysController, AuditController, BrowserSessionController, SignInController],
  providers: [
    AccessGate,
    AnswerVisibility,
    { provide: RequestGate, useExisting: AccessGate },
    ApiKeysRepository,
    ApiKeysService,
    BrowserSessionsRepository,
    BrowserSessionsService,
    Callers,
    GrantsHealth,
    KnownKeys,
    OpenIdConnect,
    StreamedAnswers,
    { provide: APP_GUARD, useClass: AccessGuard },
    { provide: APP_INTERCEPTOR, useClass: AuditInterceptor },
    { provide: APP_INTERCEPTOR, useClass: WaitedReadsInterceptor },
    { provide: APP_INTERCEPTOR, useClass: VisibilityInterceptor },
  ],
  exports: [AnswerVisibility, Callers, StreamedAnswers],
})
export class AccessModule {}
