import { type DynamicModule, Module } from '@nestjs/common';
import { AccessModule } from './access/access.module.js';
import { AuditModule } from './audit/audit.module.js';
import { ClientRecordsModule } from './client-records/client-records.module.js';
import { ComplianceModule, ComplianceWorkerModule } from './compliance/compliance.module.js';
import type { Env } from './config/env.js';
import { SettingsModule } from './config/settings.module.js';
import { ConsoleModule } from './console/console.module.js';
import { DatabaseModule } from './database/database.module.js';
import { FeedModule } from './feed/feed.module.js';
import { FhirModule } from './fhir/fhir.module.js';
import { IdempotencyModule } from './idempotency/idempotency.module.js';
import { ImportsModule, ImportsWorkerModule } from './imports/imports.module.js';
import { MonitoringModule } from './monitoring/monitoring.module.js';
import { OperationsModule } from './operations/operations.module.js';
import { PeopleModule, PeopleWorkerModule } from './people/people.module.js';
import { PlatformModule } from './platform/platform.module.js';
import { QueueModule } from './queue/work/queue.module.js';
import { RecorderModule } from './recorder/recorder.module.js';
import { RecordingsModule } from './recordings/recordings.module.js';
import { SearchModule } from './search/search.module.js';
import { SendingModule } from './sending/sending.module.js';
import { SessionsModule, SessionsWorkerModule } from './sessions/sessions.module.js';
import { SubscriptionsModule, SubscriptionsWorkerModule } from './subscriptions/subscriptions.module.js';
import { VaultModule } from './vault/vault.module.js';
import { WebhooksModule, WebhooksWorkerModule } from './webhooks/webhooks.module.js';

/** In the order of their folders. */
const MODULES = [
  MonitoringModule,
  DatabaseModule,
  VaultModule,
  QueueModule,
  AuditModule,
  AccessModule,
  IdempotencyModule,
  FeedModule,
  SendingModule,
  PlatformModule,
  SubscriptionsModule,
  WebhooksModule,
  PeopleModule,
  SessionsModule,
  FhirModule,
  RecordingsModule,
  ImportsModule,
  RecorderModule,
  ComplianceModule,
  ClientRecordsModule,
  SearchModule,
  OperationsModule,
  ConsoleModule,
];

const WORKERS = [
  SubscriptionsWorkerModule,
  WebhooksWorkerModule,
  PeopleWorkerModule,
  SessionsWorkerModule,
  ImportsWorkerModule,
  ComplianceWorkerModule,
];

/** The whole service. ROLES decides which parts run. */
@Module({})
export class AppModule {
  /** @param env validated, with its stores prepared (`prepare`) */
  static with(env: Env): DynamicModule {
    const workers = env.hasRole('worker') ? WORKERS : [];
    return { module: AppModule, imports: [SettingsModule.with(env), ...MODULES, ...workers] };
  }
}
