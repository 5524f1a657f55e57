import { randomUUID } from 'node:crypto';
import { dumpOf } from '../../harness/database-dump.js';
import { complianceView } from '../../simulator/compliance/compliance-job.js';
import { finishJob } from '../../simulator/compliance/compliance-routes.js';
import { JobsRepository } from '../../src/compliance/jobs.repository.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { contractFile } from '../support/contract-file.js';
import { useWorld } from '../world/use-world.js';
import { file, type Part, PDF, SUBMIT, submittedJobs } from './submitted-jobs.js';

const LOOK_UP = 'getComplianceJob';
const world = useWorld();
const { onPlatform, platformJob, post, submitJson, uploadUrl, show, list, resolve, tell, finish, events, unknownJob } =
  submittedJobs(world);

/** Turns the platform's webhooks on or off. */
const listen = (yes: boolean) => world.platform.set({ webhookUrl: yes ? `${world.url}/webhooks/platform` : '' });
const later = async (span: '1 s' | '5 s' | '2 min' | '1 h' | '7 h') => {
  await world.advance(span);
  await world.settle();
};
const health = async () =>
  (
    await world.call<{ checks: Record<string, { status: string; reason?: string; facts: object }> }>(
      'GET',
      '/health/ready',
    )
  ).body.checks.compliance;
const problem = (type: string) => `urn:notebridge:problem:${type}`;

describe('a submission', () => {
  test('stores the file of one PDF, and names it to the platform', async () => {
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

  test('is answered 202 until a worker has sent it', async () => {
    const { status, body } = await post([file()], { wait: 0 });
    expect([status, body.state, body.jobId, onPlatform()]).toEqual([202, 'Requested', null, []]);
    await world.settle();
    expect(await show(body.id)).toMatchObject({ state: 'Submitted', jobId: onPlatform()[0]?.jobId });
  });

  test.each<[string, Part[], number, string]>([
    ['a file that is no PDF', [file('files', 'GIF89a')], 422, 'not-a-pdf'],
    ['a file above 25 MiB', [file('files', PDF.padEnd(26 * 1024 ** 2))], 413, 'body-too-large'],
    ['no file', [['criteria', 'plan']], 400, 'validation'],
    ['an unknown criterion', [file(), ['criteria', 'handwriting']], 400, 'validation'],
    ['an unknown field', [file(), ['patient', 'x']], 400, 'unknown-part'],
  ])('with %s is rejected', async (_rule, parts, status, type) => {
    const answer = await post(parts);
    expect([answer.status, answer.body.type]).toEqual([status, problem(type)]);
    expect(onPlatform()).toEqual([]);
  });

  test.each([
    ['without files', {}, 400, '/files'],
    ['with a URL that was not handed out', { files: [{ id: 'a', url: 'https://a.example/' }] }, 422, '/files/0/url'],
  ])('%s is rejected', async (_rule, body, status, pointer) => {
    const answer = await submitJson(body);
    expect([answer.status, answer.body.pointer]).toEqual([status, pointer]);
  });

  test('is answered 400 with the message of a platform that rejects it, and not sent again', async () => {
    const { url } = await uploadUrl(); // nothing is uploaded there
    const rejected = await submitJson({ files: [{ id: 'a', url }] });
    expect([rejected.status, rejected.body.type]).toEqual([400, problem('platform-rejected')]);
    expect(rejected.body.platformMessage).toMatch('must be uploaded');
    await later('1 h');
    expect(world.platform.arrivals(SUBMIT)).toBe(1);
    const id = rejected.body.job ?? '';
    const { platformMessage } = rejected.body;
    const error = { code: 'platform-rejected' };
    expect(await show(id)).toMatchObject({ state: 'Rejected', jobId: null, error, platformMessage });
    const data = { jobId: null, state: 'Rejected', code: 'platform-rejected', result: null };
    expect(await events()).toEqual([{ type: 'compliance.failed', id, data }]);
    expect(await dumpOf(world.database.url)).not.toContain('must be uploaded');
  });

  test.each([
    [{ kind: 'rate-limit' }, null],
    [{ kind: 'forbid' }, /rejects PLATFORM_API_KEY: submitComplianceJob/],
    [{ kind: 'status', status: 404 }, /another server .* submitComplianceJob/],
  ] as const)('waits after %j and is sent once when the platform accepts it', async (fault, reason) => {
    world.platform.injectFault({ operation: SUBMIT, ...fault });
    const first = await post([file()], { idempotencyKey: 'patience', wait: 0 });
    await world.settle();
    expect(await show(first.body.id)).toMatchObject({ state: 'Requested', error: { code: expect.any(String) } });
    const { status, reason: said } = (await health()) ?? {};
    expect([status, said]).toEqual(reason ? ['degraded', expect.stringMatching(reason)] : ['ok', undefined]);
    await later('2 min');
    expect(await show(first.body.id)).toMatchObject({ state: 'Submitted', error: null });
    expect((await post([file()], { idempotencyKey: 'patience' })).body.id).toBe(first.body.id);
    expect([onPlatform(), (await health())?.status]).toEqual([[expect.anything()], 'ok']);
  });

  test('can be abandoned while it waits', async () => {
    world.platform.injectFault({ operation: SUBMIT, kind: 'forbid', count: null });
    const { body } = await post([file()], { wait: 0 });
    await world.settle();
    expect((await show(body.id)).choices.map(({ action }) => action)).toEqual(['abandon']);
    const abandoned = (await resolve(body.id, { action: 'abandon' })).body;
    expect([abandoned.state, abandoned.choices]).toEqual(['Abandoned', []]);
    world.platform.release();
    await later('1 h');
    expect(onPlatform()).toEqual([]);
  });

  test('is not sent if the store cuts off the upload', async () => {
    world.platform.set({ breakUploadsAfterBytes: 5 });
    const { status, body } = await post();
    expect([status, body.type]).toEqual([502, problem('upload-failed')]);
    expect(onPlatform()).toEqual([]);
  });

  test('is sent once if the confirmation of its commit is lost', async () => {
    const jobs = world.get(JobsRepository);
    const keep = jobs.keep.bind(jobs);
    const keeping = jest.spyOn(jobs, 'keep').mockImplementationOnce(async (...given) => {
      await keep(...given);
      throw Object.assign(new Error('Connection terminated'), { code: 'ECONNRESET' });
    });
    const { status, body } = await post();
    expect([status, keeping.mock.calls.length, onPlatform().map(({ jobId }) => jobId)]).toEqual([201, 2, [body.jobId]]);
  });
});

describe('the result', () => {
  test.each([
    ['Completed', false],
    ['Failed', true],
  ])('is the platform’s answer about a job that ended %s, and one event announces it', async (state, willFail) => {
    const { body } = await post();
    const result = JSON.parse(JSON.stringify(complianceView(await finish(body.jobId, willFail))));
    expect(await show(body.id)).toMatchObject({ state, error: null, result });
    const data = { jobId: body.jobId, state, result: `compliance/jobs/${body.id}` };
    expect(await events()).toEqual([{ type: `compliance.${state.toLowerCase()}`, id: body.id, data }]);
  });

  test('is encrypted, and shown as unreadable after a change in the database', async () => {
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

  test('is not fetched again for an event after retention removed it', async () => {
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

  test('decides how the job ended, before and after an event that contradicts it', async () => {
    listen(false);
    const { body } = await post();
    await finish(body.jobId);
    listen(true);
    tell('COMPLIANCE_JOB_FAILED', body.jobId);
    await world.settle();
    tell('COMPLIANCE_JOB_FAILED', body.jobId);
    await world.settle();
    expect((await show(body.id)).state).toBe('Completed');
    expect((await events()).map(({ type }) => type)).toEqual(['compliance.completed']);
  });

  test('is looked up without a webhook, and a late webhook announces nothing new', async () => {
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
    expect(await events()).toHaveLength(1);
  });

  test('is looked up at intervals that grow with the job’s age, from 5 seconds to 6 hours', async () => {
    listen(false);
    await post();
    const interval = async () => {
      const [job] = await world.sql<{ seconds: number }>(
        'SELECT extract(epoch FROM due_at - now())::float8 AS seconds FROM compliance_jobs',
      );
      return Math.round(job?.seconds ?? 0);
    };
    const seen: number[] = [];
    for (const span of ['5 s', '1 h', '7 h', '7 h'] as const) {
      await later(span);
      seen.push(await interval());
    }
    expect(seen).toEqual([5, 1_803, expect.any(Number), 21_600]);
  });

  test('is not that of a lookup that was sent before the final event', async () => {
    const { body } = await post();
    await world.advance('5 s');
    // Work left over from the submission may begin a second lookup, so the platform holds both.
    const held = await world.untilHeld({ operation: LOOK_UP, count: 2 });
    finishJob(world.platform.simulator.state, platformJob(body.jobId));
    await world.eventually('the event is recorded', async () => {
      await world.work.inbox();
      return (await show(body.id)).state === 'Completed';
    });
    expect(await show(body.id)).toMatchObject({ result: null });
    expect(await events()).toEqual([]);
    await held.answer();
    expect((await show(body.id)).result).toMatchObject({ status: 'completed' });
    expect(await events()).toHaveLength(1);
  });

  test('is waited for with Prefer: wait', async () => {
    const { body } = await post();
    const waiting = world.call('GET', `/v1/compliance/jobs/${body.id}`, { wait: 60 });
    finishJob(world.platform.simulator.state, platformJob(body.jobId));
    expect((await waiting).body).toMatchObject({ state: 'Completed', result: { status: 'completed' } });
  });

  test('is fetched and announced even if the job was submitted elsewhere', async () => {
    const { body } = await post();
    const { complianceJobs } = world.platform.simulator.state;
    complianceJobs.set('elsewhere-1', { ...platformJob(body.jobId), jobId: 'elsewhere-1' });
    await finish('elsewhere-1');
    const shown = await show('elsewhere-1');
    expect(shown).toMatchObject({ state: 'Completed', files: [], result: { jobId: 'elsewhere-1' } });
    expect(await events()).toMatchObject([{ id: shown.id }]);
  });
});

describe('a result that cannot be read', () => {
  test('needs a review after an hour, and is announced once it can be read', async () => {
    const { body } = await post();
    world.platform.injectFault({ operation: LOOK_UP, kind: 'forbid', count: null });
    await finish(body.jobId);
    await later('5 s');
    expect(await events()).toEqual([]);
    for (let hours = 0; hours < 2; hours += 1) await later('1 h');
    tell('COMPLIANCE_JOB_COMPLETED', body.jobId);
    await world.settle();
    const data = { jobId: body.jobId, state: 'Completed', result: null, code: 'result-unreadable' };
    const review = { type: 'compliance.needs-review', id: body.id, data };
    expect(await events()).toEqual([review]);
    expect((await list('review=result-unreadable')).items).toMatchObject([
      { id: body.id, error: { code: 'result-unreadable' } },
    ]);
    const metrics = await world.call('GET', '/metrics');
    expect(metrics.text).toContain('notebridge_awaiting_decision{kind="compliance-result-unreadable"} 1');

    world.platform.release();
    await later('1 h');
    expect((await events()).map(({ type }) => type)).toEqual(['compliance.needs-review', 'compliance.completed']);
    expect((await list('review=result-unreadable')).items).toEqual([]);
  });

  test('is looked up again if the platform does not know the job, unless it is resolved', async () => {
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
    expect((await events()).map(({ id }) => id)).toEqual([late.id]);
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
  expect(await show(body.id)).toMatchObject({ state: 'Completed', error: { code: 'result-unreadable' } });
  const { checks } = (await world.call<HealthReport>('GET', '/health/ready')).body;
  const reason = expect.stringContaining('Check PLATFORM_BASE_URL');
  expect(checks.compliance).toMatchObject({ status: 'degraded', reason });
  world.platform.release();
  await later('1 h');
  expect(await show(body.id)).toMatchObject({ error: null, result: { jobId: body.jobId } });
});

test('without states in the contract, the event is published once, and the result is fetched', async () => {
  await world.restart({ PLATFORM_CONTRACT: contractFile([LOOK_UP]) });
  const { body } = await post();
  await later('5 s');
  expect(await show(body.id)).toMatchObject({ state: 'Submitted', result: null });
  const held = world.untilHeld({ operation: LOOK_UP });
  finishJob(world.platform.simulator.state, platformJob(body.jobId));
  const { answer } = await held;
  const data = { jobId: body.jobId, state: 'Completed', result: null };
  const published = [{ type: 'compliance.completed', id: body.id, data }];
  expect(await events()).toEqual(published);
  await answer();
  tell('COMPLIANCE_JOB_FAILED', body.jobId);
  await world.settle();
  expect(await show(body.id)).toMatchObject({ state: 'Completed', result: { status: 'completed' } });
  expect(await events()).toEqual(published);
});

test('without states in the contract, a result that stays unreadable needs a review after an hour', async () => {
  await world.restart({ PLATFORM_CONTRACT: contractFile([LOOK_UP]) });
  const { body } = await post();
  world.platform.injectFault({ operation: LOOK_UP, kind: 'forbid', count: null });
  await finish(body.jobId);
  for (let hours = 0; hours < 2; hours += 1) await later('1 h');
  expect((await events()).map(({ type }) => type)).toEqual(['compliance.completed', 'compliance.needs-review']);
  expect(await show(body.id)).toMatchObject({ state: 'Completed', error: { code: 'result-unreadable' } });
  world.platform.release();
  await later('1 h');
  expect(await show(body.id)).toMatchObject({ error: null, result: { status: 'completed' } });
  expect(await events()).toHaveLength(2);
});

test('without a lookup in the contract, the end of a job is settled as no-result', async () => {
  await world.restart({ PLATFORM_CONTRACT: contractFile(['apiKey']) });
  tell('COMPLIANCE_JOB_COMPLETED', 'elsewhere-2');
  await world.settle();
  for (let hours = 0; hours < 2; hours += 1) await later('1 h');
  const id = (await list()).items[0]?.id;
  expect(await show(String(id))).toMatchObject({ state: 'Completed', result: null, error: { code: 'no-result' } });
  expect((await events()).map(({ type }) => type)).toEqual(['compliance.completed']);
});

test('the list of jobs comes newest first, in pages, without results, and filters by state', async () => {
  const [unknown] = await unknownJob();
  const ids: string[] = [];
  for (let at = 0; at < 3; at += 1) ids.unshift((await post()).body.id);
  const first = await list('limit=2');
  const second = await list(`limit=2&cursor=${first.nextCursor}`);
  expect([...first.items, ...second.items].map(({ id }) => id)).toEqual([...ids, unknown.id]);
  expect(first.items[0]).not.toHaveProperty('result');
  expect((await list('state=Unknown')).items.map(({ id }) => id)).toEqual([unknown.id]);
  expect((await list('review=submission-unknown')).items.map(({ id }) => id)).toEqual([unknown.id]);
  expect((await world.call('GET', '/v1/compliance/jobs?state=Lost')).status).toBe(400);
});

describe('an event before the answer to the submission', () => {
  /** A submission that the platform accepted and whose answer it holds. */
  async function held() {
    const before = onPlatform().length;
    world.platform.hold({ operation: SUBMIT });
    const answering = post();
    await world.untilCalled(SUBMIT, world.platform.arrivals(SUBMIT));
    return { answering, jobId: onPlatform()[before]?.jobId ?? '' };
  }

  test('waits, and belongs to the submission', async () => {
    const { answering, jobId } = await held();
    await finish(jobId);
    expect(await world.sql('SELECT job_id FROM compliance_jobs')).toEqual([{ job_id: null }]);
    world.platform.release();
    const { status, body } = await answering;
    expect([status, body.jobId]).toEqual([201, jobId]);
    await later('1 s');
    expect(await show(body.id)).toMatchObject({ state: 'Completed', result: { jobId } });
    expect((await events()).map(({ id }) => id)).toEqual([body.id]);
    expect(await world.sql('SELECT job_id FROM compliance_jobs')).toEqual([{ job_id: jobId }]);
  });

  test('is published under its own id after 5 seconds; the answer adopts its row', async () => {
    const { answering, jobId } = await held();
    await finish(jobId);
    await later('5 s');
    const [published] = await events();
    const own = published?.id ?? '';
    expect(published).toMatchObject({ type: 'compliance.completed', data: { jobId } });
    world.platform.release();
    const { status, body } = await answering;
    expect([status, body.jobId, body.state, body.files]).toEqual([201, jobId, 'Completed', ['file-1']]);
    expect(body.id).not.toBe(own);
    expect(await show(own)).toEqual(body);
    expect(await show(jobId)).toEqual(body);
    expect((await list()).items.map(({ id }) => id)).toEqual([body.id]);
    tell('COMPLIANCE_JOB_COMPLETED', jobId);
    await later('1 h');
    expect(await events()).toHaveLength(1);
  });

  test('keeps its own job when the submission is linked to another one', async () => {
    const { answering, jobId } = await held();
    await finish(jobId);
    await later('5 s');
    const own = (await events())[0]?.id ?? '';
    world.platform.release();
    const { body } = await answering;
    await world.sql(`UPDATE compliance_jobs SET fault = 'gone', result = NULL`);
    const other = (await post([file()], { wait: 0 })).body;
    await world.work.compliance();
    await world.sql('DELETE FROM compliance_jobs WHERE id = $1', [other.id]); // It is known by its event only.
    const otherJob = onPlatform().at(-1)?.jobId ?? '';
    await finish(otherJob);
    const linked = await resolve(body.id, { action: 'link', jobId: otherJob });
    expect(linked.body).toMatchObject({ id: body.id, jobId: otherJob, state: 'Completed' });
    expect(await show(own)).toMatchObject({ id: own, jobId, files: [] });
  });

  test('does not wait if it names another, known job', async () => {
    const { body: other } = await post();
    const { answering } = await held();
    await finish(other.jobId);
    expect((await show(other.id)).state).toBe('Completed');
    world.platform.release();
    await answering;
  });
});

describe('a submission without an answer', () => {
  test('needs a review and is never sent again, also under its Idempotency-Key', async () => {
    const [job] = await unknownJob('lost-1');
    expect(job.error?.code).toBe('submission-unknown');
    expect(job.choices.map(({ action }) => action)).toEqual(['link', 'create', 'abandon']);
    await later('1 h');
    const again = await post([file()], { idempotencyKey: 'lost-1' });
    expect([again.status, again.body.id, again.body.state]).toEqual([202, job.id, 'Unknown']);
    expect(onPlatform()).toHaveLength(1);
    const data = { jobId: null, state: 'Unknown', result: null, code: 'submission-unknown' };
    expect(await events()).toEqual([{ type: 'compliance.needs-review', id: job.id, data }]);
    const metrics = await world.call('GET', '/metrics');
    expect(metrics.text).toContain('notebridge_awaiting_decision{kind="compliance-unknown"} 1');
  });

  test('link: adopts the row of an event; both ids lead to the job, shown under the id of the POST', async () => {
    const [job, { jobId }] = await unknownJob();
    await finish(jobId);
    const own = (await events()).at(-1)?.id ?? '';
    expect(own).not.toBe(job.id);
    const linked = await resolve(job.id, { action: 'link', jobId });
    expect([linked.status, linked.body]).toMatchObject([200, { id: job.id, jobId, state: 'Completed', error: null }]);
    const shown = await show(job.id);
    expect(shown).toMatchObject({ files: ['file-1'], result: { jobId } });
    expect(await show(own)).toEqual(shown);
    expect((await list()).items.map(({ id }) => id)).toEqual([job.id]);
    expect((await list('review=submission-unknown')).items).toEqual([]);
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

  test('create: a row that an event made first, twice, still leads to one job', async () => {
    const [job, { jobId }] = await unknownJob();
    world.platform.injectFault({ operation: LOOK_UP, kind: 'status', status: 404, count: 1 });
    await finish(jobId);
    await resolve(job.id, { action: 'link', jobId });
    expect((await show(job.id)).error?.code).toBe('maybe-gone');
    expect((await resolve(job.id, { action: 'create' })).status).toBe(409); // the URL may be wrong
    await world.sql(`UPDATE compliance_jobs SET fault = 'gone' WHERE fault = 'maybe-gone'`);
    world.platform.hold({ operation: SUBMIT });
    const answering = resolve(job.id, { action: 'create' });
    await world.untilCalled(SUBMIT, 1);
    const second = onPlatform()[1]?.jobId ?? '';
    await finish(second);
    await later('5 s');
    world.platform.release();
    expect((await answering).body).toMatchObject({ id: job.id, jobId: second, files: ['file-1'] });
    expect((await list()).items.map(({ id }) => id)).toEqual([job.id]);
    for (const { id } of await world.sql<{ id: string }>('SELECT id FROM compliance_jobs')) {
      expect((await show(id)).id).toBe(job.id);
    }
  });

  test('create: answers as a new submission', async () => {
    const [job] = await unknownJob();
    world.platform.injectFault({ operation: SUBMIT, kind: 'refuse' });
    expect((await resolve(job.id, { action: 'create' })).body.state).toBe('Unknown');
    world.platform.injectFault({ operation: SUBMIT, kind: 'status', status: 422 });
    const { status, body } = await resolve(job.id, { action: 'create' });
    expect([status, body.type, (await show(job.id)).state]).toEqual([400, problem('platform-rejected'), 'Rejected']);
  });

  test('abandon: ends the job permanently', async () => {
    const [job] = await unknownJob();
    const abandoned = await resolve(job.id, { action: 'abandon' });
    expect(abandoned.body).toMatchObject({ state: 'Abandoned', jobId: null, error: { code: 'abandoned' } });
    const { status, body } = await resolve(job.id, { action: 'create' });
    expect([status, body.type]).toEqual([409, problem('wrong-state')]);
  });

  test('becomes Unknown after its process died, once the call can no longer take effect', async () => {
    const id = randomUUID();
    await world.sql(
      `INSERT INTO compliance_jobs (id, shown_id, state, attempted_at, lane, lease_owner, lease_no, lease_safe_at)
       VALUES ($1, $1, 'Requested', now(), 1, $2, 1, now() + interval '35 s')`,
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
      [409, problem('wrong-state')],
      [409, problem('job-taken')],
    ]);
  });
});
