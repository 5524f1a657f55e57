import { status } from '../../harness/push-receiver.js';
import { finishJob } from '../../simulator/compliance/compliance-routes.js';
import type { FeedType } from '../../src/words/feed-types.js';
import { submittedJobs } from '../compliance/submitted-jobs.js';
import { importsIn } from '../imports/imports.js';
import { peopleOf } from '../people/mirroring.js';
import { usePushes } from '../subscriptions/pushed.js';
import { providerLine, providersCsv } from '../support/bulk.js';
import { identitiesIn } from '../support/renamed-people.js';
import { useWorld } from '../world/use-world.js';
import { publishedIn } from './published.js';

const world = useWorld({ platform: { processingEvents: false } });
const { published, shown } = publishedIn(world);
const { put, begin, beginRemoval } = peopleOf(world);
const { rename, merge, redirect, newSession } = identitiesIn(world);
const jobs = submittedJobs(world);
const pushes = usePushes(world);
const { start } = importsIn(world);

/** An event of the platform, which is not handled yet. */
const tell = (eventType: string, payload: object) =>
  world.platform.simulator.state.deliveries.send({ eventType, payload } as never);

/** A smart edit whose event was handled. */
async function smartEdit(type: FeedType, eventType: string): Promise<void> {
  const { data } = await published(type, () => tell(eventType, { jobId: 'edit-1' }));
  const { items } = await shown<{ items: object[] }>('webhook-deliveries');
  expect(items).toMatchObject([{ eventType, subject: data.jobId, state: 'processed' }]);
}

/** Provokes each event, and reads what `shows` of its type says once it is published. */
const SCENARIOS: Record<Exclude<FeedType, `session.${string}`>, () => Promise<void>> = {
  'person.synced': async () => {
    const { data } = await published('person.synced', () => begin('providers/p-1'));
    const { kind, externalId, platformUserId } = data;
    expect(platformUserId).toEqual(expect.any(String));
    expect(await shown(`${kind}s/${externalId}`)).toMatchObject({ platformUserId, sync: { state: 'synced' } });
  },

  'person.needs-review': async () => {
    await put('providers/p-1');
    const { data } = await published('person.needs-review', () => begin('providers/p-2', { email: 'p-1@example.org' }));
    const sync = { state: 'needs-review', error: { code: data.code } };
    expect(await shown(`${data.kind}s/${data.externalId}`)).toMatchObject({ externalId: 'p-2', sync });
  },

  'person.failed': async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 400 });
    const { data } = await published('person.failed', () => begin('providers/p-1'));
    const sync = { state: 'failed', error: { code: data.code } };
    expect(await shown(`${data.kind}s/${data.externalId}`)).toMatchObject({ externalId: 'p-1', sync });
  },

  'person.deleted': async () => {
    await put('providers/p-1');
    const { data } = await published('person.deleted', () => beginRemoval('providers/p-1'));
    const erased = { firstName: '', lastName: '', email: null };
    expect(await shown(`${data.kind}s/${data.externalId}`)).toMatchObject({ ...erased, sync: { state: 'deleted' } });
  },

  'person.renamed': async () => {
    await put('providers/p-1');
    const { data } = await published('person.renamed', () => rename('providers/p-1', 'p-2'));
    const { kind, externalId, formerExternalId } = data;
    expect(await shown(`${kind}s/${externalId}`)).toMatchObject({ externalId: 'p-2' });
    expect(await redirect(`${kind}s/${formerExternalId}`)).toEqual([301, '/v1/providers/p-2']);
  },

  'person.merged': async () => {
    for (const path of ['providers/home', 'clients/c-1', 'clients/c-2']) await put(path);
    const sessions = [await newSession('c-1'), await newSession('c-2')];
    const { data } = await published('person.merged', () => merge('clients/c-1', 'c-2'));
    expect(await redirect(`clients/${data.formerExternalId}`)).toEqual([301, '/v1/clients/c-2']);
    const { items } = await shown<{ items: { id: string }[] }>(`sessions?client=${data.externalId}`);
    expect(items.map(({ id }) => id).sort()).toEqual(sessions.sort());
  },

  'user.created': async () => {
    const { platformUserId } = await put('providers/p-1');
    const own = { userId: platformUserId, externalUserId: 'p-1', role: 'HealthcareProvider' };
    const { data } = await published('user.created', () => tell('USER_CREATED', own));
    const person = { kind: 'provider', externalId: 'p-1' };
    expect(await shown(`people/platform-users/${data.userId}`)).toMatchObject({ role: data.role, person });
    const user = { userId: 'u-1', externalUserId: null, role: 'OrgAdmin' };
    const { data: other } = await published('user.created', () => tell('USER_CREATED', user));
    expect(await shown(`people/platform-users/${other.userId}`)).toMatchObject({ role: 'OrgAdmin', person: null });
  },

  'processing.notes-finished': async () => {
    const { subject } = await published('processing.notes-finished', () =>
      tell('PROCESSING_SESSION_NOTES_FINISHED', { sessionId: 's-1' }),
    );
    const delivery = { eventType: 'PROCESSING_SESSION_NOTES_FINISHED', state: 'processed' };
    expect(await shown(subject)).toMatchObject(delivery);
  },

  'processing.finished': async () => {
    const { data } = await published('processing.finished', () =>
      tell('PROCESSING_SESSION_FINISHED', { processingId: 'processing-1' }),
    );
    expect(await shown(`processing-sessions/${data.processingId}`)).toMatchObject({ processingId: 'processing-1' });
  },

  'compliance.completed': async () => {
    const { body } = await jobs.post();
    const { subject, data } = await published('compliance.completed', () =>
      finishJob(world.platform.simulator.state, jobs.platformJob(body.jobId)),
    );
    expect(data.result).toBe(subject);
    expect(await shown(subject)).toMatchObject({ id: body.id, state: 'Completed', result: { jobId: body.jobId } });
  },

  'compliance.failed': async () => {
    const { body } = await jobs.post();
    const job = jobs.platformJob(body.jobId);
    job.willFail = true;
    const failed = await published('compliance.failed', () => finishJob(world.platform.simulator.state, job));
    expect(await shown(failed.subject)).toMatchObject({ id: body.id, state: 'Failed' });
    world.platform.injectFault({ operation: 'submitComplianceJob', kind: 'status', status: 400 });
    const rejected = await published('compliance.failed', () => jobs.post());
    expect(await shown(rejected.subject)).toMatchObject({
      state: 'Rejected',
      platformMessage: expect.stringContaining('Injected'),
    });
  },

  'compliance.needs-review': async () => {
    world.platform.injectFault({ operation: 'submitComplianceJob', kind: 'commit-then-cut' });
    const { subject, data } = await published('compliance.needs-review', () => jobs.post());
    const choices = expect.arrayContaining([expect.objectContaining({ action: 'link' })]);
    expect(await shown(subject)).toMatchObject({ state: 'Unknown', error: { code: data.code }, choices });
  },

  'compliance.merged': async () => {
    const [job, { jobId }] = await jobs.unknownJob();
    await jobs.finish(jobId);
    const { subject, data } = await published('compliance.merged', () =>
      jobs.resolve(job.id, { action: 'link', jobId }),
    );
    expect([subject, data.into]).toEqual([`compliance/jobs/${job.id}`, job.id]);
    for (const id of [data.id, data.into]) expect(await shown(`compliance/jobs/${id}`)).toMatchObject({ id: job.id });
  },

  'smart-edit.completed': () => smartEdit('smart-edit.completed', 'SMART_EDIT_JOB_COMPLETED'),
  'smart-edit.failed': () => smartEdit('smart-edit.failed', 'SMART_EDIT_JOB_FAILED'),

  'subscription.paused': async () => {
    await pushes.subscribe({ types: ['person.synced'] });
    pushes.receiver.respond = status(410);
    const { subject, data } = await published('subscription.paused', () => pushes.append(1));
    expect(await shown(subject)).toMatchObject({ state: 'paused', pausedReason: data.reason });
  },

  'import.finished': async () => {
    const file = providersCsv([providerLine('p-1')]);
    const { subject, data } = await published('import.finished', () => start('', [file]));
    expect(await shown(subject)).toMatchObject({ state: data.state, counts: { created: 1, pending: 0 } });
  },
};

test.each(Object.entries(SCENARIOS))('%s is published once a GET shows what it says', (_type, scenario) => scenario());
