import { dumpOf } from '../../harness/database-dump.js';
import { complianceView } from '../../simulator/compliance/compliance-job.js';
import { finishJob } from '../../simulator/compliance/compliance-routes.js';
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

  test('is on record as sent, with the id of its job', async () => {
    const { body } = await post();
    const { items } = (
      await world.call<{ items: { subjects: object; outcome: string }[] }>('GET', `/v1/audit?action=platform.${SUBMIT}`)
    ).body;
    expect(items).toMatchObject([{ subjects: { 'compliance-job': [body.id] }, outcome: 'begun' }]);
  });

  test('may name files that the caller uploaded itself', async () => {
    const { uploadUrl: target, url, method, headers } = await uploadUrl();
    expect((await fetch(target, { method, headers, body: PDF })).status).toBe(200);
    const { status, body } = await submitJson({ files: [{ id: 'a', url }], criteriaGroups: ['therapy_notes'] });
    expect([status, body.files, platformJob(body.jobId).files]).toEqual([201, ['a'], [{ id: 'a', url }]]);
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
    const { id, platformMessage } = rejected.body;
    const error = { code: 'platform-rejected' };
    expect(await show(id)).toMatchObject({ state: 'Rejected', jobId: null, error, platformMessage });
    const data = { jobId: null, state: 'Rejected', code: 'platform-rejected', result: null };
    expect(await events()).toEqual([{ type: 'compliance.failed', id, data }]);
    expect(await dumpOf(world.database.url)).not.toContain('must be uploaded');
  });

  test.each([
    [{ kind: 'rate-limit' }, 503, 'platform-rate-limited'],
    [{ kind: 'forbid' }, 503, 'platform-unauthorized'],
    [{ kind: 'status', status: 404 }, 404, 'not-on-platform'],
  ] as const)(
    'that %j shows to have had no effect leaves no job, and may be sent again',
    async (fault, status, type) => {
      world.platform.injectFault({ operation: SUBMIT, ...fault });
      const refused = await post([file()], { idempotencyKey: 'patience' });
      expect([refused.status, refused.body.type, (await list()).items]).toEqual([status, problem(type), []]);
      expect(await events()).toEqual([]);
      await later('2 min');
      expect(await post([file()], { idempotencyKey: 'patience' })).toMatchObject({
        status: 201,
        body: { state: 'Submitted' },
      });
      expect(onPlatform()).toHaveLength(1);
    },
  );

  test('is refused while the platform limits its calls, and not during another pause', async () => {
    world.platform.injectFault({ operation: SUBMIT, kind: 'rate-limit' });
    await post();
    const { status, headers } = await post();
    expect([status, Number(headers.get('retry-after')), world.platform.arrivals(SUBMIT)]).toEqual([
      503,
      expect.any(Number),
      1,
    ]);
    await later('2 min');
    world.platform.injectFault({ operation: SUBMIT, kind: 'forbid' });
    await post();
    expect((await post()).status).toBe(201);
  });

  test('is not sent if the store cuts off the upload', async () => {
    world.platform.set({ breakUploadsAfterBytes: 5 });
    const { status, body } = await post();
    expect([status, body.type]).toEqual([502, problem('upload-failed')]);
    expect(onPlatform()).toEqual([]);
  });

  test('is not sent if the platform gives no upload URL, and says so without an id', async () => {
    world.platform.injectFault({ operation: 'complianceUploadUrl', kind: 'commit-then-500' });
    const { status, body } = await post([file()], { idempotencyKey: 'patience' });
    expect([status, body.type, body.id, (await list()).items]).toEqual([502, problem('upload-failed'), undefined, []]);
    expect((await post([file()], { idempotencyKey: 'patience' })).status).toBe(201);
    expect(onPlatform()).toHaveLength(1);
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
    await world.sql('UPDATE compliance_jobs SET files = NULL, result = NULL, removed_at = now()');
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
  test('needs a review after an hour without lookups; linked again, it is looked up and announced', async () => {
    const { body } = await post();
    world.platform.injectFault({ operation: LOOK_UP, kind: 'forbid', count: null });
    await finish(body.jobId);
    await later('5 s');
    expect(await events()).toEqual([]);
    for (let hours = 0; hours < 2; hours += 1) await later('1 h');
    const data = { jobId: body.jobId, state: 'Completed', result: null, code: 'result-unreadable' };
    const review = { type: 'compliance.needs-review', id: body.id, data };
    expect(await events()).toEqual([review]);
    expect((await list('review=result-unreadable')).items).toMatchObject([
      { id: body.id, error: { code: 'result-unreadable' } },
    ]);
    const metrics = await world.call('GET', '/metrics');
    expect(metrics.text).toContain('notebridge_awaiting_decision{kind="compliance-result-unreadable"} 1');
    const lookups = world.platform.arrivals(LOOK_UP);
    world.platform.release();
    await later('7 h');
    expect(world.platform.arrivals(LOOK_UP)).toBe(lookups);

    await resolve(body.id, { action: 'link', jobId: body.jobId });
    await later('5 s');
    expect((await events()).map(({ type }) => type)).toEqual(['compliance.needs-review', 'compliance.completed']);
    expect(await show(body.id)).toMatchObject({ state: 'Completed', error: null, result: { jobId: body.jobId } });
    expect((await list('review=result-unreadable')).items).toEqual([]);
  });

  test('is looked up again after another event', async () => {
    const { body } = await post();
    world.platform.injectFault({ operation: LOOK_UP, kind: 'forbid', count: null });
    await finish(body.jobId);
    for (let hours = 0; hours < 2; hours += 1) await later('1 h');
    world.platform.release();
    tell('COMPLIANCE_JOB_COMPLETED', body.jobId);
    await world.settle();
    await later('2 min');
    expect(await show(body.id)).toMatchObject({ state: 'Completed', error: null, result: { jobId: body.jobId } });
  });

  test('may be abandoned once its lookups fail', async () => {
    const { body } = await post();
    world.platform.injectFault({ operation: LOOK_UP, kind: 'status', status: 404, count: null });
    await finish(body.jobId);
    expect(await show(body.id)).toMatchObject({ state: 'Completed', result: null, error: { code: 'maybe-gone' } });
    expect((await resolve(body.id, { action: 'abandon' })).body).toMatchObject({ state: 'Abandoned', choices: [] });
    world.platform.release();
    await later('7 h');
    expect(await events()).toEqual([]);
  });

  test('of a job that never ends needs a review after thirty days', async () => {
    listen(false);
    const { body } = await post();
    for (let days = 0; days < 31; days += 1) {
      await world.advance('24 h');
      await world.settle();
    }
    expect(await show(body.id)).toMatchObject({ state: 'Submitted', error: { code: 'result-unreadable' } });
    expect((await events()).map(({ type }) => type)).toEqual(['compliance.needs-review']);
  });
});

test('a result that the platform does not know counts as gone once another job was looked up', async () => {
  const { body: lost } = await post();
  world.platform.simulator.state.complianceJobs.delete(lost.jobId ?? '');
  tell('COMPLIANCE_JOB_COMPLETED', lost.jobId);
  await world.settle();
  expect(await show(lost.id)).toMatchObject({ error: { code: 'maybe-gone' } });
  await post();
  await later('5 s');
  await later('2 min');
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
  expect(checks.platform).toMatchObject({ status: 'degraded', reason });
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
  tell('COMPLIANCE_JOB_COMPLETED', body.jobId);
  await world.settle();
  await later('2 min');
  expect(await show(body.id)).toMatchObject({ error: null, result: { status: 'completed' } });
  expect(await events()).toHaveLength(2);
});

test('without states in the contract, a job that is linked again keeps its end, and is looked up', async () => {
  await world.restart({ PLATFORM_CONTRACT: contractFile([LOOK_UP]) });
  const { body } = await post();
  world.platform.injectFault({ operation: LOOK_UP, kind: 'forbid', count: null });
  await finish(body.jobId);
  world.platform.release();
  const linked = await resolve(body.id, { action: 'link', jobId: body.jobId });
  expect([linked.status, linked.body.state]).toEqual([200, 'Completed']);
  await later('5 s');
  tell('COMPLIANCE_JOB_COMPLETED', body.jobId);
  await later('5 s');
  expect(await show(body.id)).toMatchObject({ state: 'Completed', error: null, result: { status: 'completed' } });
  expect((await events()).map(({ type }) => type)).toEqual(['compliance.completed']);
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
