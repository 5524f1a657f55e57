import { randomUUID } from 'node:crypto';
import { dumpOf } from '../../harness/database-dump.js';
import { complianceView } from '../../simulator/compliance/compliance-job.js';
import { finishJob } from '../../simulator/compliance/compliance-routes.js';
import type { ComplianceJobResponse } from '../../src/compliance/compliance.dto.js';
import type { Page } from '../../src/http/request/page.js';
import type { HealthReport } from '../../src/operations/health-checks.js';
import { contractFile } from '../support/contract-file.js';
import { useWorld } from '../world/use-world.js';
import { file, type Part, PDF, SUBMIT, submittedJobs } from './submitted-jobs.js';

const LOOK_UP = 'getComplianceJob';
const world = useWorld();
const { onPlatform, platformJob, post, submitJson, uploadUrl, show, resolve, tell, finish, events, unknownJob } =
  submittedJobs(world);

/** Whether the platform's webhooks reach the service. */
const listen = (yes: boolean) => world.platform.set({ webhookUrl: yes ? `${world.url}/webhooks/platform` : '' });
const later = async (span: '5 s' | '1 h' | '7 h') => {
  await world.advance(span);
  await world.settle();
};

describe('a submission', () => {
  test('of one PDF stores the file and names it to the platform', async () => {
    const { status, headers, body } = await post();
    expect([status, headers.get('location')]).toEqual([201, `/v1/compliance/jobs/${body.id}`]);
    expect(body).toMatchObject({ state: 'Submitted', result: null, error: null, files: ['file-1'] });
    expect(platformJob(body.jobId).files.map(({ id }) => id)).toEqual(['file-1']);
    const fileName = expect.stringMatching(/^[0-9a-f-]{36}\.pdf$/);
    const upload = { kind: 'compliance', bytes: PDF.length, isPdf: true, attempts: 1, fileName };
    expect(world.platform.simulator.state.uploads.list()).toMatchObject([upload]);
    expect(await show(body.id)).toEqual(body);
    expect(await show(body.jobId ?? '')).toEqual(body);
    expect((await world.call('GET', '/v1/compliance/jobs/unknown')).status).toBe(404);
  });

  test('may name files that the caller uploaded itself', async () => {
    const { uploadUrl: target, url, method, headers } = await uploadUrl();
    expect((await fetch(target, { method, headers, body: PDF })).status).toBe(200);
    const { status, body } = await submitJson({ files: [{ id: 'a', url }], criteriaGroups: ['therapy_notes'] });
    expect([status, body.files, platformJob(body.jobId).files]).toEqual([201, ['a'], [{ id: 'a', url }]]);
  });

  test.each<[string, Part[], number, string]>([
    ['a file that is no PDF', [file('files', 'GIF89a')], 422, 'not-a-pdf'],
    ['a file above 25 MiB', [file('files', PDF.padEnd(60 * 1024 ** 2))], 413, 'body-too-large'],
    ['no file', [['criteria', 'plan']], 400, 'validation'],
    ['an unknown criterion', [file(), ['criteria', 'handwriting']], 400, 'validation'],
    ['an unknown field', [file(), ['patient', 'x']], 400, 'unknown-part'],
  ])('with %s is rejected', async (_rule, parts, status, type) => {
    const answer = await post(parts);
    expect([answer.status, answer.body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
    expect(onPlatform()).toEqual([]);
  });

  test.each([
    ['without files', {}, 400, '/files'],
    ['with a URL that was not handed out', { files: [{ id: 'a', url: 'https://a.example/' }] }, 422, '/files/0/url'],
  ])('%s is rejected', async (_rule, body, status, pointer) => {
    const answer = await submitJson(body);
    expect([answer.status, answer.body.pointer]).toEqual([status, pointer]);
  });

  test('that the platform rejects is answered with its message and not sent again', async () => {
    const { url } = await uploadUrl(); // nothing is uploaded there
    const { status, body } = await submitJson({ files: [{ id: 'a', url }] });
    expect([status, body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);
    expect(body.platformMessage).toMatch('must be uploaded');
    await later('1 h');
    const [job] = await world.sql<{ id: string }>('SELECT id FROM compliance_jobs');
    expect(await show(job?.id ?? '')).toMatchObject({ state: 'Rejected', jobId: null, error: { code: 'rejected' } });
    expect(world.platform.arrivals(SUBMIT)).toBe(1);
  });

  test.each([
    ['rate-limit', 503, 'platform-rate-limited'],
    ['forbid', 503, 'platform-unauthorized'],
  ] as const)('%s: answered %i %s, then sent under the same key', async (kind, status, type) => {
    const key = { idempotencyKey: 'patience' };
    world.platform.injectFault({ operation: SUBMIT, kind });
    const { body, ...answer } = await post([file()], key);
    expect([answer.status, body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
    expect((await post([file()], key)).status).toBe(201);
    expect((await post([file()], key)).headers.get('idempotent-replayed')).toBe('true');
    expect(onPlatform()).toHaveLength(1);
  });

  test('is not sent if the store cuts off the upload', async () => {
    world.platform.set({ breakUploadsAfterBytes: 5 });
    const { status, body } = await post();
    expect([status, body.type]).toEqual([502, 'urn:notebridge:problem:upload-failed']);
    expect(onPlatform()).toEqual([]);
  });
});

describe('the result', () => {
  test.each([
    ['Completed', false],
    ['Failed', true],
  ])('of a job that ended %s is the platform’s answer, and one event announces it', async (state, willFail) => {
    const { body } = await post();
    const result = JSON.parse(JSON.stringify(complianceView(await finish(body.jobId, willFail))));
    expect(await show(body.id)).toMatchObject({ state, error: null, result: willFail ? expect.anything() : result });
    const event = { type: `compliance.${state.toLowerCase()}`, subject: `compliance/jobs/${body.id}` };
    expect(await events(body.jobId)).toEqual([event]);
  });

  test('is encrypted, and shown as unreadable once it was changed in the database', async () => {
    const { body } = await post();
    await finish(body.jobId);
    const found = 'Found on page';
    expect(JSON.stringify((await show(body.id)).result)).toMatch(found);
    const dump = await dumpOf(world.database.url);
    expect([found, Buffer.from(found).toString('hex')].filter((text) => dump.includes(text))).toEqual([]);

    await world.sql(`UPDATE compliance_jobs SET result = result || '\\x00'`);
    const shown = { state: 'Completed', files: ['file-1'], result: null, unreadable: ['result'] };
    expect(await world.call('GET', `/v1/compliance/jobs/${body.id}`)).toMatchObject({ status: 200, body: shown });
  });

  test('is not fetched again for a repeated event once retention removed it', async () => {
    const { body } = await post();
    await finish(body.jobId);
    await world.sql('UPDATE compliance_jobs SET request = NULL, result = NULL, removed_at = now()');
    const lookUps = world.platform.arrivals(LOOK_UP);
    tell('COMPLIANCE_JOB_COMPLETED', body.jobId);
    await world.settle();
    expect(world.platform.arrivals(LOOK_UP)).toBe(lookUps);
    const removed = { state: 'Completed', result: null, files: [], removedAt: expect.any(String) };
    expect(await show(body.id)).toMatchObject(removed);
  });

  test('of a failure is not shown for the completion that follows it', async () => {
    const { body } = await post();
    await finish(body.jobId, true);
    expect((await show(body.id)).result).not.toBeNull();
    tell('COMPLIANCE_JOB_COMPLETED', body.jobId);
    const held = await world.untilHeld({ operation: LOOK_UP });
    expect(await show(body.id)).toMatchObject({ state: 'Completed', result: null });
    await held.answer();
  });

  test('that contradicts the webhook is announced, too', async () => {
    listen(false);
    const { body } = await post();
    await finish(body.jobId);
    listen(true);
    tell('COMPLIANCE_JOB_FAILED', body.jobId);
    await world.settle();
    expect((await show(body.id)).state).toBe('Completed');
    const types = (await events(body.jobId)).map(({ type }) => type);
    expect(types).toEqual(['compliance.failed', 'compliance.completed']);
  });

  test('is polled without a webhook, and a late webhook announces nothing new', async () => {
    listen(false);
    const { body } = await post();
    await later('5 s');
    expect(world.platform.arrivals(LOOK_UP)).toBe(1);
    expect(await show(body.id)).toMatchObject({ state: 'Submitted', result: null });
    await finish(body.jobId);
    await later('5 s');
    expect(await show(body.id)).toMatchObject({ state: 'Completed', result: { jobId: body.jobId } });
    listen(true);
    tell('COMPLIANCE_JOB_COMPLETED', body.jobId);
    await world.settle();
    expect(await events(body.jobId)).toHaveLength(1);
  });

  test('that arrives before the answer to the submission belongs to the same job', async () => {
    world.platform.hold({ operation: SUBMIT });
    const answering = post();
    await world.untilCalled(SUBMIT);
    expect(await world.sql('SELECT state FROM compliance_jobs')).toEqual([{ state: 'Requested' }]);
    const { jobId } = await finish(onPlatform()[0]?.jobId ?? null);
    expect(await events(jobId)).toEqual([]);
    world.platform.release();
    const { status, body } = await answering;
    expect([status, body.jobId]).toEqual([201, jobId]);
    await world.settle();
    expect(await show(body.id)).toMatchObject({ state: 'Completed', result: { jobId } });
    expect(await events(jobId)).toEqual([{ type: 'compliance.completed', subject: `compliance/jobs/${body.id}` }]);
    expect(await world.sql('SELECT job_id FROM compliance_jobs')).toEqual([{ job_id: jobId }]);
  });

  test('is waited for with Prefer: wait', async () => {
    const answering = post([file()], { wait: 60 });
    await world.untilCalled(SUBMIT);
    finishJob(world.platform.simulator.state, platformJob(onPlatform()[0]?.jobId ?? null));
    expect((await answering).body).toMatchObject({ state: 'Completed', result: { status: 'completed' } });
  });

  test('of a job that was submitted elsewhere is fetched and announced', async () => {
    const { body } = await post();
    const { complianceJobs } = world.platform.simulator.state;
    complianceJobs.set('elsewhere-1', { ...platformJob(body.jobId), jobId: 'elsewhere-1' });
    await finish('elsewhere-1');
    expect(await show('elsewhere-1')).toMatchObject({
      state: 'Completed',
      files: [],
      result: { jobId: 'elsewhere-1' },
    });
    expect(await events('elsewhere-1')).toHaveLength(1);
  });

  test('that the platform does not know yet is asked for again, unless the job is resolved first', async () => {
    const [{ body: late }, { body: lost }] = [await post(), await post()];
    world.platform.injectFault({ operation: LOOK_UP, kind: 'status', status: 404, count: null });
    for (const { id, jobId } of [late, lost]) {
      await finish(jobId);
      expect(await show(id)).toMatchObject({ state: 'Completed', result: null, error: { code: 'maybe-gone' } });
    }
    expect((await resolve(lost.id, { action: 'abandon' })).body.state).toBe('Abandoned');
    world.platform.release();
    await later('7 h');
    expect(await show(late.id)).toMatchObject({ state: 'Completed', error: null, result: { jobId: late.jobId } });
  });
});

test('a result that the platform does not know counts as gone once another job was looked up', async () => {
  const { body: lost } = await post();
  world.platform.simulator.state.complianceJobs.delete(lost.jobId ?? '');
  tell('COMPLIANCE_JOB_COMPLETED', lost.jobId);
  await world.settle();
  expect(await show(lost.id)).toMatchObject({ error: { code: 'maybe-gone' } });
  await later('5 s');
  await post();
  await later('7 h');
  await later('7 h');
  expect(await show(lost.id)).toMatchObject({ state: 'Completed', result: null, error: { code: 'gone' } });
});

test('another server than the platform settles no job, and degrades health', async () => {
  const { body } = await post();
  world.platform.injectFault({ operation: LOOK_UP, kind: 'status', status: 302, count: null });
  await finish(body.jobId);
  await later('1 h');
  expect(await show(body.id)).toMatchObject({ state: 'Completed', error: { code: 'platform-address' } });
  const { checks } = (await world.call<HealthReport>('GET', '/health/ready')).body;
  const reason = expect.stringContaining('Check PLATFORM_BASE_URL');
  expect(checks.compliance).toMatchObject({ status: 'degraded', reason });
  world.platform.release();
  await later('1 h');
  expect(await show(body.id)).toMatchObject({ error: null, result: { jobId: body.jobId } });
});

test('without states in the contract, each new answer is announced until a webhook names the end', async () => {
  await world.restart({ PLATFORM_CONTRACT: await contractFile([LOOK_UP]) });
  listen(false);
  const { body } = await post();
  await later('5 s');
  expect(await show(body.id)).toMatchObject({ state: 'Submitted', result: { status: 'processing' } });
  await finish(body.jobId);
  await later('1 h');
  expect(await show(body.id)).toMatchObject({ state: 'Submitted', result: { status: 'completed' } });
  listen(true);
  tell('COMPLIANCE_JOB_COMPLETED', body.jobId);
  await world.settle();
  expect(await show(body.id)).toMatchObject({ state: 'Completed', result: { status: 'completed' } });
  const types = (await events(body.jobId)).map(({ type }) => type);
  expect(types).toEqual(['compliance.answered', 'compliance.answered', 'compliance.completed']);
});

test('the list of jobs comes newest first, in pages, without results, and filters by state', async () => {
  const [unknown] = await unknownJob();
  const ids: string[] = [];
  for (let at = 0; at < 3; at += 1) ids.unshift((await post()).body.id);
  const list = async (query: string) =>
    (await world.call<Page<ComplianceJobResponse>>('GET', `/v1/compliance/jobs?${query}`)).body;
  const first = await list('limit=2');
  const second = await list(`limit=2&cursor=${first.nextCursor}`);
  expect([...first.items, ...second.items].map(({ id }) => id)).toEqual([...ids, unknown.id]);
  expect(first.items[0]).not.toHaveProperty('result');
  expect((await list('state=Unknown')).items.map(({ id }) => id)).toEqual([unknown.id]);
  expect((await world.call('GET', '/v1/compliance/jobs?state=Lost')).status).toBe(400);
});

describe('a submission without an answer', () => {
  test('stays Unknown and is never sent again, also under its Idempotency-Key', async () => {
    const [job] = await unknownJob('lost-1');
    expect(job.error?.code).toBe('submission-unknown');
    await later('1 h');
    const again = await post([file()], { idempotencyKey: 'lost-1' });
    expect([again.status, again.body.id, again.body.state]).toEqual([202, job.id, 'Unknown']);
    expect(onPlatform()).toHaveLength(1);
  });

  test('link: takes the job and the result; the id of its early event leads to it', async () => {
    const [job, { jobId }] = await unknownJob();
    await finish(jobId);
    const [event] = await events(jobId);
    const alias = event?.subject.replace('compliance/jobs/', '') ?? '';
    expect(alias).not.toBe(job.id);
    const linked = await resolve(job.id, { action: 'link', jobId });
    expect([linked.status, linked.body.jobId]).toEqual([200, jobId]);
    await world.settle();
    const shown = await show(job.id);
    expect(shown).toMatchObject({ id: job.id, state: 'Completed', result: { jobId } });
    expect(await show(alias)).toEqual(shown);
  });

  test('link: can be corrected if the platform does not know the job', async () => {
    const [job, { jobId }] = await unknownJob();
    await resolve(job.id, { action: 'link', jobId: 'mistyped' });
    await later('5 s');
    expect(await show(job.id)).toMatchObject({ state: 'Submitted', jobId: 'mistyped', error: { code: 'maybe-gone' } });
    const linked = await resolve(job.id, { action: 'link', jobId });
    expect(linked.body).toMatchObject({ state: 'Submitted', jobId, error: null });
  });

  test('create: submits the same files once more', async () => {
    const [job, lost] = await unknownJob();
    const { body } = await resolve(job.id, { action: 'create' });
    expect(body).toMatchObject({ id: job.id, state: 'Submitted', jobId: onPlatform()[1]?.jobId });
    expect(platformJob(body.jobId).files).toEqual(lost.files);
  });

  test('create: stays Unknown if the platform rejects it or does not answer', async () => {
    const [job] = await unknownJob();
    world.platform.injectFault({ operation: SUBMIT, kind: 'rate-limit' });
    expect((await resolve(job.id, { action: 'create' })).status).toBe(503);
    expect((await show(job.id)).state).toBe('Unknown');
    world.platform.injectFault({ operation: SUBMIT, kind: 'refuse' });
    expect((await resolve(job.id, { action: 'create' })).body.state).toBe('Unknown');
  });

  test('abandon: ends the job permanently', async () => {
    const [job] = await unknownJob();
    const abandoned = await resolve(job.id, { action: 'abandon' });
    expect(abandoned.body).toMatchObject({ state: 'Abandoned', jobId: null, error: { code: 'abandoned' } });
    const { status, body } = await resolve(job.id, { action: 'create' });
    expect([status, body.type]).toEqual([409, 'urn:notebridge:problem:wrong-state']);
  });

  test('becomes Unknown if its process died, once the call can no longer take effect', async () => {
    const id = randomUUID();
    await world.sql(
      `INSERT INTO compliance_jobs (id, state, submitted_at, lease_owner, lease_no, lease_safe_at)
       VALUES ($1, 'Requested', now(), $2, 1, now() + interval '35 s')`,
      [id, randomUUID()],
    );
    await later('5 s');
    expect((await show(id)).state).toBe('Requested');
    await later('1 h');
    expect((await show(id)).state).toBe('Unknown');
    expect(world.platform.arrivals(SUBMIT)).toBe(0);
  });

  test.each([{ action: 'retry' }, { action: 'link' }, { action: 'link', jobId: 7 }])(
    'is not resolved by %j',
    async (body) => {
      const [job] = await unknownJob();
      expect((await resolve(job.id, body)).status).toBe(400);
    },
  );

  test('is not linked to a job of another submission, and a submitted job is not resolved', async () => {
    const { body } = await post();
    const [job] = await unknownJob();
    const answers = [
      await resolve(body.id, { action: 'create' }),
      await resolve(job.id, { action: 'link', jobId: body.jobId }),
    ];
    expect(answers.map((answer) => [answer.status, answer.body.type])).toEqual([
      [409, 'urn:notebridge:problem:wrong-state'],
      [409, 'urn:notebridge:problem:job-taken'],
    ]);
  });
});
