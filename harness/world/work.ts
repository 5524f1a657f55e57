import type { INestApplicationContext } from '@nestjs/common';
import { JobFeedEvents } from '../../src/compliance/job-events.handler.js';
import { JobsRepository } from '../../src/compliance/jobs.repository.js';
import { ComplianceProcessor, ResultRefresher } from '../../src/compliance/result-refresher.js';
import { ImportRunner } from '../../src/imports/run/import-runner.service.js';
import { ImportsProcessor } from '../../src/imports/run/imports.processor.js';
import { AuditSealer } from '../../src/operations/audit-sealer.js';
import { Retention } from '../../src/operations/retention.js';
import { PeopleProcessor } from '../../src/people/reconcile/people.processor.js';
import { Reconciler } from '../../src/people/reconcile/reconciler.js';
import { DependentsRepository } from '../../src/people/store/dependents.repository.js';
import type { QueueName } from '../../src/queue/backend/queue-names.js';
import { RequestSender } from '../../src/sessions/create/request-sender.js';
import { SessionFeedEvents } from '../../src/sessions/model/session-feed-events.js';
import { ProcessingRefresher } from '../../src/sessions/refresh/processing-refresher.js';
import { SessionRefresher } from '../../src/sessions/refresh/refresh.repository.js';
import { SessionRequestsProcessor, SessionsProcessor } from '../../src/sessions/sessions.processor.js';
import { InboxProcessor } from '../../src/webhooks/process/inbox.processor.js';
import { InboxLoop } from '../../src/webhooks/process/inbox-loop.js';

/** What has loops run when BullMQ says so; a world does that itself. */
export const PROCESSORS = [
  ComplianceProcessor,
  ImportsProcessor,
  InboxProcessor,
  PeopleProcessor,
  SessionRequestsProcessor,
  SessionsProcessor,
];

/**
 * Everything that the service does by itself, each until nothing of its kind is due.
 *
 * @param step lets a moment pass: a call that was decided at the moment of the last change counts as outdated by it
 */
export function workOf(app: INestApplicationContext, step: () => Promise<unknown>) {
  const inbox = app.get(InboxLoop, { strict: false });
  const requests = app.get(RequestSender, { strict: false });
  const sessions = app.get(SessionRefresher, { strict: false });
  const processing = app.get(ProcessingRefresher, { strict: false });
  const sessionEvents = app.get(SessionFeedEvents, { strict: false });
  const results = app.get(ResultRefresher, { strict: false });
  const jobs = app.get(JobsRepository, { strict: false });
  const jobEvents = app.get(JobFeedEvents, { strict: false });
  const reconciler = app.get(Reconciler, { strict: false });
  const dependents = app.get(DependentsRepository, { strict: false });
  const imports = app.get(ImportRunner, { strict: false });
  const sealer = app.get(AuditSealer, { strict: false });
  const retention = app.get(Retention, { strict: false });
  return {
    async inbox() {
      inbox.trigger();
      await inbox.finished();
    },
    async requests() {
      await requests.run();
      await requests.settleLost();
    },
    async sessions() {
      await sessions.run();
      await processing.run();
      await sessionEvents.publish();
    },
    async compliance() {
      await results.run();
      await jobs.settleLost();
      await jobEvents.publish();
    },
    async people() {
      while (await reconciler.reconcileNext()) await step();
      await reconciler.requeueClients();
      await dependents.requeueOverlooked();
    },
    async imports() {
      await imports.failStale();
      await imports.prepareAll();
      await imports.countAll();
    },
    seals: () => sealer.sealAll(),
    async retention() {
      await retention.dropOld();
      await sealer.prune();
    },
  };
}

export type Work = ReturnType<typeof workOf>;

/** What polls of the service come to here, by their names there: a poll that is not named is work that no test does. */
export const WORK_OF_POLLS: Record<string, keyof Work> = {
  people: 'people',
  'clients of new providers': 'people',
  'overlooked people': 'people',
  imports: 'imports',
  'steered imports': 'imports',
  'import outcomes': 'imports',
  'broken uploads': 'imports',
  'audit-seals': 'seals',
  'retention-audit': 'retention',
  retention: 'retention',
};

/** What runs each second or so, but for the seals of the audit trail: nothing follows from them. */
export const FREQUENT: ReadonlySet<keyof Work> = new Set([
  'inbox',
  'requests',
  'sessions',
  'compliance',
  'people',
  'imports',
]);

/** What the notification of a queue begins. */
export const WORK_OF_QUEUES: Record<QueueName, keyof Work> = {
  'user-management': 'people',
  'webhook-inbox': 'inbox',
  sessions: 'sessions',
  'session-requests': 'requests',
  compliance: 'compliance',
  imports: 'imports',
};
