import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { ComplianceJob } from '../simulator/compliance/compliance-job.js';
import { complianceView } from '../simulator/compliance/compliance-job.js';
import { finishJob } from '../simulator/compliance/compliance-routes.js';
import type { ComplianceJobResponse, ComplianceUploadResponse } from '../src/compliance/compliance.dto.js';
import type { FeedEventResponse } from '../src/feed/feed.dto.js';
import type { Page } from '../src/http/request/page.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from './support/app.js';
import { contractFile } from './support/contract-file.js';
import { dumpOf } from './support/database-dump.js';
import { type Mirror, useMirrors } from './support/service.js';

interface ProblemBody {
  type: string;
  pointer?: string;
  missing?: string[];
  state?: string;
  platformMessage?: string;
}

/** No webhook is late for the platform, however slow the machine is: a retry would be one more to look up. */
const PLATFORM = { stepMs: 0, webhookSecret: WEBHOOK_SECRET, webhookTimeoutMs: 60_000 };
/** Milliseconds for which a refused sender may go on (`dropRest`). */
const READS_ON_MS = 5_000;
const PDF = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';
// Before the hooks of the mirrors, which drop the database.
const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;
let sql: pg.Pool;

beforeAll(async () => {
  mirror = await newMirror({ platform: PLATFORM, env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
  service = await mirror.start();
  sql = mirror.database.sql;
});
beforeEach(() => listen(true));
afterEach(() => mirror.simulator.state.faults.clear());

/** Whether the service hears of the ends of jobs. */
function listen(yes: boolean): void {
  const webhookUrl = yes ? `${service.url}/webhooks/platform` : '';
  mirror.simulator.state.settings = { ...mirror.simulator.state.settings, webhookUrl };
}

type Part = [name: string, content: string | Uint8Array<ArrayBuffer>, fileName?: string];

async function post<Body = ComplianceJobResponse>(parts: Part[], headers: Record<string, string> = {}, to = service) {
  const form = new FormData();
  for (const [name, content, fileName] of parts) {
    if (fileName === undefined) form.append(name, String(content));
    else form.append(name, new Blob([content], { type: 'application/pdf' }), fileName);
  }
  const init = { method: 'POST', headers: { authorization: `Bearer ${ADMIN_KEY}`, ...headers }, body: form };
  return until('the database has time for it', async () => {
    const response = await fetch(`${to.url}/v1/compliance/jobs`, init);
    const body = (await response.json()) as Body & ProblemBody;
    if (body.type === 'urn:notebridge:problem:database-unavailable') return undefined;
    return { status: response.status, headers: response.headers, body: body as Body };
  });
}
const file = (name = 'files', content: Part[1] = PDF): Part => [name, content, 'Jane Roe.pdf'];
const submitJson = <Body = ComplianceJobResponse>(body: unknown) =>
  service.call<Body>('POST', '/v1/compliance/jobs', { body });
const show = async (id: string, wait?: number) =>
  (await service.call<ComplianceJobResponse>('GET', `/v1/compliance/jobs/${id}`, { wait })).body;
/** The job with its result, as whoever waits for it is shown it. */
const ended = (id: string) =>
  until('its result is there', async () => {
    const job = await show(id, 60);
    return job.result === null ? undefined : job;
  });
const resolve = <Body = ComplianceJobResponse>(id: string, body: object) =>
  service.call<Body>('POST', `/v1/compliance/jobs/${id}/resolve`, { body });
const platformJobs = () => [...mirror.simulator.state.complianceJobs.values()];
const platformJob = (jobId: string | null) =>
  mirror.simulator.state.complianceJobs.get(jobId ?? '') ?? fail('no such job');
const uploads = () => mirror.simulator.state.uploads.list().filter(({ kind }) => kind === 'compliance');
/** Lets every look-up that waits for its time come at once. */
/** Lets every look-up come at once, in the order in which they would have come. */
const hurry = () =>
  sql.query(
    `UPDATE compliance_jobs SET due_at = due_at - interval '2 days' WHERE due_at IS NOT NULL AND job_id IS NOT NULL`,
  );
/** The job with its result; hurried again and again, since a look-up that was under way puts the next one off. */
const hurriedEnd = (id: string) =>
  until('its result is there', async () => {
    await hurry();
    const job = await show(id);
    return job.result === null ? undefined : job;
  });
const news = async (jobId: string | null) => {
  const { body } = await service.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=200');
  return body.items.filter(({ data }) => data.jobId === jobId).map(({ type, subject }) => ({ type, subject }));
};
/** Resolves when every webhook that the platform has to send was acknowledged and handled. */
const heardAll = async () => {
  await mirror.simulator.state.deliveries.settled();
  await until('every webhook is handled', async () => {
    const { rows } = await sql.query(`SELECT 1 FROM webhook_deliveries WHERE state NOT IN ('processed', 'ignored')`);
    return rows.length === 0;
  });
};
const told = (jobId: string | null) => until('it is told', async () => (await news(jobId)).length > 0);

/** The simulator's contract with other headers for uploads of PDFs. */
function contractOf(headers: object): string {
  const contract = JSON.parse(readFileSync('simulator/contract.json', 'utf8')) as {
    operations: { complianceUploadUrl: { upload: { headers: object } } };
  };
  contract.operations.complianceUploadUrl.upload.headers = headers;
  const name = path.join(process.env.TEST_FOLDER ?? '', `contract-${process.pid}-${Date.now()}.json`);
  writeFileSync(name, JSON.stringify(contract));
  return name;
}

function fail(message: string): never {
  throw new Error(message);
}

async function uploadedFile(id: string): Promise<{ id: string; url: string }> {
  const { body } = await service.call<ComplianceUploadResponse>('POST', '/v1/compliance/upload-url', { body: {} });
  const sent = await fetch(body.uploadUrl, { method: body.method, headers: body.headers, body: PDF });
  expect(sent.status).toBe(200);
  return { id, url: body.url };
}

async function unknownJob(headers: Record<string, string> = {}): Promise<[ComplianceJobResponse, ComplianceJob]> {
  mirror.trouble({ operation: 'submitComplianceJob', kind: 'commit-then-cut' });
  const answer = await post([file()], headers);
  expect([answer.status, answer.body.state, answer.body.jobId]).toEqual([202, 'Unknown', null]);
  return [answer.body, platformJobs().at(-1) ?? fail('it was not committed')];
}

describe('a submission', () => {
  it('of one PDF is at the platform under its id, and the PDF at its store', async () => {
    const answer = await post([file()]);
    expect(answer.status).toBe(201);
    const { id, jobId } = answer.body;
    expect(answer.headers.get('location')).toBe(`/v1/compliance/jobs/${id}`);
    expect(answer.body).toMatchObject({ state: 'Submitted', result: null, error: null, files: ['file-1'] });
    expect(platformJob(jobId).files.map((submitted) => submitted.id)).toEqual(['file-1']);
    expect(uploads().at(-1)).toMatchObject({ bytes: PDF.length, isPdf: true, attempts: 1 });
    expect(uploads().at(-1)?.fileName).toMatch(/^[0-9a-f-]{36}\.pdf$/);
    expect(await show(id)).toEqual(answer.body);
  });

  it('of many PDFs names each after its part, with the criteria asked for', async () => {
    const { body } = await post([file('visit-1'), file('visit-2'), ['criteria', 'plan'], ['criteria', 'attendees']]);
    expect(body.files).toEqual(['visit-1', 'visit-2']);
    expect(platformJob(body.jobId).criteria).toEqual(['plan', 'attendees']);
  });

  it('names files that were uploaded before', async () => {
    const files = [await uploadedFile('a'), await uploadedFile('b')];
    const { status, body } = await submitJson({ files, criteriaGroups: ['therapy_notes'] });
    expect([status, body.files]).toEqual([201, ['a', 'b']]);
    expect(platformJob(body.jobId).files).toEqual(files);
  });

  it.each<[string, Part[], number, string]>([
    ['422: a file that is no PDF', [file('files', 'GIF89a')], 422, 'not-a-pdf'],
    [
      '413: a file above 25 MiB',
      [file('files', new Uint8Array(Buffer.alloc(25 * 1024 ** 2 + 1, PDF)))],
      413,
      'body-too-large',
    ],
    ['400: no file', [['criteria', 'plan']], 400, 'validation'],
    ['400: a criterion that is not on the list', [file(), ['criteria', 'handwriting']], 400, 'validation'],
    ['400: a group that is not on the list', [file(), ['criteriaGroups', 'all']], 400, 'validation'],
    ['400: another field', [file(), ['patient', 'x']], 400, 'unknown-part'],
  ])('%s is not submitted', async (_rule, parts, status, type) => {
    const count = platformJobs().length;
    const answer = await post<ProblemBody>(parts);
    expect([answer.status, answer.body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
    expect(platformJobs()).toHaveLength(count);
  });

  it.each([
    ['400: files is required', {}, 400, '/files'],
    ['400: a file has a url', { files: [{ id: 'a' }] }, 400, '/files/0/url'],
    ['422: a url that is no address', { files: [{ id: 'a', url: 'a.pdf' }] }, 422, '/files/0/url'],
    ['422: a url from elsewhere', { files: [{ id: 'a', url: 'https://files.example/' }] }, 422, '/files/0/url'],
    ['422: a url of a cloud’s metadata', { files: [{ id: 'a', url: 'http://169.254.169.254/' }] }, 422, '/files/0/url'],
  ])('%s', async (_rule, body, status, pointer) => {
    const answer = await submitJson<ProblemBody>(body);
    expect([answer.status, answer.body.pointer]).toEqual([status, pointer]);
  });

  it('that the platform rejects is answered with its words and is not tried again', async () => {
    // Nothing was uploaded there.
    const { body } = await service.call<ComplianceUploadResponse>('POST', '/v1/compliance/upload-url', { body: {} });
    const answer = await submitJson<ProblemBody>({ files: [{ id: 'a', url: body.url }] });
    expect([answer.status, answer.body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);
    expect(answer.body.platformMessage).toMatch('must be uploaded');
    const { rows } = await sql.query('SELECT id FROM compliance_jobs ORDER BY created_at DESC LIMIT 1');
    expect(await show(rows[0].id)).toMatchObject({ state: 'Rejected', jobId: null, error: { code: 'rejected' } });
  });

  it.each([
    ['503: the platform asks for patience', { kind: 'rate-limit' as const }, 503, 'platform-rate-limited'],
    ['503: the platform refuses the key', { kind: 'forbid' as const }, 503, 'platform-unauthorized'],
  ])('%s; nothing was done, and the same Idempotency-Key submits it then', async (_rule, rule, status, type) => {
    const count = platformJobs().length;
    const key = { 'idempotency-key': `patience-${type}` };
    mirror.trouble({ operation: 'submitComplianceJob', ...rule });
    const answer = await post<ProblemBody>([file()], key);
    expect([answer.status, answer.body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
    expect((await post([file()], key)).status).toBe(201);
    expect((await post([file()], key)).headers.get('idempotent-replayed')).toBe('true');
    expect(platformJobs()).toHaveLength(count + 1);
  });

  it.each([
    ['null: none is sent', null, 'none'],
    ['another: it wins', 'application/x-checked', 'application/x-checked'],
  ])('the contract’s Content-Type of an upload wins, %s', async (_rule, contentType, uploadContentType) => {
    const { state } = mirror.simulator;
    const before = state.settings;
    const signed = await mirror.start({ PLATFORM_CONTRACT: contractOf({ 'Content-Type': contentType }) });
    state.settings = { ...before, uploadContentType };
    const own = await post([file()], {}, signed);
    const { body } = await signed.call<ComplianceUploadResponse>('POST', '/v1/compliance/upload-url', { body: {} });
    const bytes = new Uint8Array(Buffer.from(PDF)); // of which fetch says no type by itself
    const sent = await fetch(body.uploadUrl, { method: body.method, headers: body.headers, body: bytes });
    const refused = await post<ProblemBody>([file()]);
    state.settings = before;
    expect([own.status, sent.status, refused.status]).toEqual([201, 200, 502]);
    await signed.kill('SIGTERM');
  });

  it('of a file above 25 MiB is answered to a sender that still writes', async () => {
    const large = new Uint8Array(Buffer.alloc(60 * 1024 ** 2, PDF));
    for (let round = 0; round < 5; round += 1) {
      const answer = await until('it is answered', () => {
        const begun = performance.now();
        return post<ProblemBody>([file('files', large)]).catch((error) => {
          // The service reads on for a while only; a stalled machine writes for longer.
          if (performance.now() - begun < READS_ON_MS) throw error;
          return undefined;
        });
      });
      expect([answer.status, answer.body.type]).toEqual([413, 'urn:notebridge:problem:body-too-large']);
    }
  });

  it('502: a store that breaks off; nothing is submitted', async () => {
    const before = mirror.simulator.state.settings;
    mirror.simulator.state.settings = { ...before, breakUploadsAfterBytes: 5 };
    const answer = await post<ProblemBody>([file()]);
    mirror.simulator.state.settings = before;
    expect([answer.status, answer.body.type]).toEqual([502, 'urn:notebridge:problem:upload-failed']);
  });
});

describe('the result', () => {
  it.each([
    ['Completed', false],
    ['Failed', true],
  ])(
    'of a job that ended %s comes after its webhook, as the platform gave it, and is told once',
    async (state, willFail) => {
      const { body } = await post([file('visit-1')]);
      const job = platformJob(body.jobId);
      job.willFail = willFail;
      finishJob(mirror.simulator.state, job);
      const shown = await ended(body.id);
      expect(shown).toMatchObject({ state, error: null, result: JSON.parse(JSON.stringify(complianceView(job))) });
      await told(body.jobId);
      expect(await news(body.jobId)).toEqual([
        { type: `compliance.${state.toLowerCase()}`, subject: `compliance/jobs/${body.id}` },
      ]);
    },
  );

  it('that was changed in the database is shown as unreadable beside what else is known of the job', async () => {
    const { body } = await post([file()]);
    finishJob(mirror.simulator.state, platformJob(body.jobId));
    await ended(body.id);
    await sql.query(`UPDATE compliance_jobs SET result = result || '\\x00' WHERE id = $1`, [body.id]);
    const shown = { state: 'Completed', files: ['file-1'], result: null, unreadable: ['result'] };
    const { status, body: found } = await service.call('GET', `/v1/compliance/jobs/${body.id}`);
    expect([status, found]).toMatchObject([200, shown]);
  });

  it('that retention removed is not fetched again for an event that is told once more', async () => {
    const { body } = await post([file()]);
    const job = platformJob(body.jobId);
    finishJob(mirror.simulator.state, job);
    await ended(body.id);
    await heardAll();
    const removal = 'UPDATE compliance_jobs SET request = NULL, result = NULL, removed_at = now() WHERE id = $1';
    await sql.query(removal, [body.id]);
    mirror.simulator.state.deliveries.send({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId: job.jobId } });
    await heardAll();
    const { rows } = await sql.query('SELECT due_at FROM compliance_jobs WHERE id = $1', [body.id]);
    expect(rows).toEqual([{ due_at: null }]);
    const removed = { state: 'Completed', result: null, files: [], removedAt: expect.any(String) };
    expect(await show(body.id, 60)).toMatchObject(removed);
  });

  it('of a failure is not shown as that of the completion that the platform tells of afterwards', async () => {
    const { body } = await post([file()]);
    const job = platformJob(body.jobId);
    job.willFail = true;
    finishJob(mirror.simulator.state, job);
    expect((await ended(body.id)).state).toBe('Failed');
    mirror.hold({ operation: 'getComplianceJob', match: { jobId: body.jobId ?? '' } });
    mirror.simulator.state.deliveries.send({
      eventType: 'COMPLIANCE_JOB_COMPLETED',
      payload: { jobId: body.jobId ?? '' },
    });
    const completed = await until('it is told', async () => {
      const view = await show(body.id);
      return view.state === 'Completed' ? view : undefined;
    });
    mirror.release();
    expect(completed.result).toBeNull();
  });

  it('of a job that ended otherwise than its webhook had told is told, too', async () => {
    listen(false);
    const { body } = await post([file()]);
    const job = platformJob(body.jobId);
    finishJob(mirror.simulator.state, job);
    listen(true);
    mirror.simulator.state.deliveries.send({ eventType: 'COMPLIANCE_JOB_FAILED', payload: { jobId: job.jobId } });
    const told = await until('both ends are told', async () => {
      const types = (await news(body.jobId)).map(({ type }) => type);
      return types.includes('compliance.completed') ? types : undefined;
    });
    expect(told.filter((type) => type === 'compliance.completed')).toHaveLength(1);
    expect((await ended(body.id)).state).toBe('Completed');
  });

  it('comes by polling when no webhook does, and a late webhook tells nothing new', async () => {
    listen(false);
    const { body } = await post([file()]);
    const jobId = body.jobId ?? fail('it has no id');
    await hurry();
    await until('it was looked up', async () => {
      const { rows } = await sql.query('SELECT 1 FROM compliance_jobs WHERE id = $1 AND fetched_at IS NOT NULL', [
        body.id,
      ]);
      return rows.length > 0;
    });
    expect(await show(body.id)).toMatchObject({ state: 'Submitted', result: null });
    const job = platformJob(body.jobId);
    finishJob(mirror.simulator.state, job);
    await hurry();
    expect(await ended(body.id)).toMatchObject({ state: 'Completed', result: { jobId: body.jobId } });
    await told(body.jobId);
    listen(true);
    mirror.simulator.state.deliveries.send({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId } });
    await heardAll();
    expect(await news(body.jobId)).toHaveLength(1);
  });

  it('is found by the id of the platform as well', async () => {
    const { body } = await post([file()]);
    expect((await show(body.jobId ?? '')).id).toBe(body.id);
    expect((await service.call('GET', '/v1/compliance/jobs/nobody')).status).toBe(404);
  });

  it('that ends before the submission was answered belongs to the same job, which is told once and by its id', async () => {
    mirror.trouble({ operation: 'submitComplianceJob', kind: 'slow', ms: 3_600_000 });
    const count = platformJobs().length;
    const answering = post([file()]);
    const job = await until('the platform has it', () => platformJobs()[count]);
    finishJob(mirror.simulator.state, job);
    await heardAll();
    mirror.simulator.state.timers.cancelAll(); // the submission is answered
    const { status, body } = await answering;
    expect([status, body.jobId]).toEqual([201, job.jobId]);
    expect(await ended(body.id)).toMatchObject({ state: 'Completed', result: { jobId: job.jobId } });
    await told(job.jobId);
    expect(await news(job.jobId)).toEqual([{ type: 'compliance.completed', subject: `compliance/jobs/${body.id}` }]);
    const { rows } = await sql.query('SELECT count(*)::int AS jobs FROM compliance_jobs WHERE job_id = $1', [
      job.jobId,
    ]);
    expect(rows).toEqual([{ jobs: 1 }]);
  });

  it('is waited for with Prefer: wait', async () => {
    const count = platformJobs().length;
    const answering = post([file()], { prefer: 'wait=60' });
    finishJob(mirror.simulator.state, await until('the platform has it', () => platformJobs()[count]));
    expect((await answering).body).toMatchObject({ state: 'Completed', result: { status: 'completed' } });
  });

  it('is kept sealed', async () => {
    const { body } = await post([file()]);
    finishJob(mirror.simulator.state, platformJob(body.jobId));
    expect(JSON.stringify((await ended(body.id)).result)).toMatch('Found on page');
    const dump = await dumpOf(mirror.database.url);
    expect(dump.includes('Found on page') || dump.includes(Buffer.from('Found on page').toString('hex'))).toBe(false);
  });
});

describe('the list of jobs', () => {
  it('has the newest first, page by page, without results, and finds those that wait for a person', async () => {
    const [unknown] = await unknownJob();
    const ids: string[] = [];
    for (let at = 0; at < 3; at += 1) ids.unshift((await post([file()])).body.id);
    const list = async (query: string) =>
      (await service.call<Page<ComplianceJobResponse>>('GET', `/v1/compliance/jobs?${query}`)).body;
    const first = await list('limit=2');
    const second = await list(`limit=2&cursor=${first.nextCursor}`);
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual([...ids, unknown.id]);
    expect(first.items[0]).not.toHaveProperty('result');
    const waiting = await list('state=Unknown');
    expect(waiting.items[0]?.id).toBe(unknown.id);
    expect(new Set(waiting.items.map(({ state }) => state))).toEqual(new Set(['Unknown']));
    expect((await service.call('GET', '/v1/compliance/jobs?state=Lost')).status).toBe(400);
  });
});

describe('a submission without an answer', () => {
  it('stands as Unknown and is not made again by itself, whatever is sent under its key', async () => {
    const key = { 'idempotency-key': 'lost-1' };
    const count = platformJobs().length;
    const [job] = await unknownJob(key);
    expect(job.error?.code).toBe('submission-unknown');
    const again = await post([file()], key);
    expect([again.status, again.body.id, again.body.state]).toEqual([202, job.id, 'Unknown']);
    expect(platformJobs()).toHaveLength(count + 1);
  });

  it('is linked to the job that a person found on the platform', async () => {
    const [job, onPlatform] = await unknownJob();
    finishJob(mirror.simulator.state, onPlatform);
    const linked = await resolve(job.id, { action: 'link', jobId: onPlatform.jobId });
    expect([linked.status, linked.body.jobId]).toEqual([200, onPlatform.jobId]);
    expect(await ended(job.id)).toMatchObject({ state: 'Completed', result: { jobId: onPlatform.jobId } });
  });

  it('the id under which the feed told of its end finds it after link', async () => {
    const [job, onPlatform] = await unknownJob();
    finishJob(mirror.simulator.state, onPlatform);
    await told(onPlatform.jobId);
    const [first] = await news(onPlatform.jobId);
    const alias = first?.subject.replace('compliance/jobs/', '') ?? '';
    expect(alias).not.toBe(job.id);
    await resolve(job.id, { action: 'link', jobId: onPlatform.jobId });
    const shown = await ended(job.id);
    expect(await show(alias)).toEqual(shown);
    expect(shown.id).toBe(job.id);
  });

  it('that was linked to a job that the platform does not know can be linked again', async () => {
    const [job, onPlatform] = await unknownJob();
    await resolve(job.id, { action: 'link', jobId: 'mistyped' });
    await hurry();
    const lost = await until('it is not there', async () => {
      const shown = await show(job.id);
      return shown.error ? shown : undefined;
    });
    expect([lost.state, lost.jobId, lost.error?.code]).toEqual(['Submitted', 'mistyped', 'gone']);
    const linked = await resolve(job.id, { action: 'link', jobId: onPlatform.jobId });
    expect(linked.body).toMatchObject({ state: 'Submitted', jobId: onPlatform.jobId, error: null });
  });

  it('is submitted again by a person’s word', async () => {
    const [job, lost] = await unknownJob();
    const again = await resolve(job.id, { action: 'create' });
    expect(again.body).toMatchObject({ id: job.id, state: 'Submitted', jobId: platformJobs().at(-1)?.jobId });
    expect(again.body.jobId).not.toBe(lost.jobId);
    expect(platformJob(again.body.jobId).files).toEqual(lost.files);
  });

  it('stays Unknown when the next one is refused, or gets no answer either', async () => {
    const [job] = await unknownJob();
    mirror.trouble({ operation: 'submitComplianceJob', kind: 'rate-limit' });
    expect((await resolve(job.id, { action: 'create' })).status).toBe(503);
    expect((await show(job.id)).state).toBe('Unknown');
    mirror.trouble({ operation: 'submitComplianceJob', kind: 'refuse' });
    expect((await resolve(job.id, { action: 'create' })).body.state).toBe('Unknown');
  });

  it('is abandoned by a person’s word', async () => {
    const [job] = await unknownJob();
    const abandoned = await resolve(job.id, { action: 'abandon' });
    expect(abandoned.body).toMatchObject({ state: 'Abandoned', jobId: null, error: { code: 'abandoned' } });
    expect((await resolve<ProblemBody>(job.id, { action: 'create' })).body.state).toBe('Abandoned');
  });

  it('of a process that was killed stands as Unknown once its time is over', async () => {
    const second = await mirror.start();
    mirror.trouble({ operation: 'submitComplianceJob', kind: 'slow', ms: 3_600_000 });
    const count = platformJobs().length;
    const answering = post([file()], {}, second).catch(() => 'cut');
    await until('the platform has it', () => platformJobs()[count]);
    await second.kill();
    expect(await answering).toBe('cut');
    const { rows } = await sql.query(
      `WITH dead AS (UPDATE workers SET alive_until = now() WHERE id IN (
         SELECT lease_owner FROM compliance_jobs WHERE state = 'Requested'))
       UPDATE compliance_jobs SET lease_safe_at = now() WHERE state = 'Requested' RETURNING id`,
    );
    expect(rows).toHaveLength(1);
    await until('it is unknown', async () => (await show(rows[0].id)).state === 'Unknown');
    expect(platformJobs()).toHaveLength(count + 1);
  });

  it.each([
    ['an action is required', {}],
    ['the action is link, create or abandon', { action: 'retry' }],
    ['to link, a jobId is named', { action: 'link' }],
    ['a jobId is a text', { action: 'link', jobId: 7 }],
  ])('400: %s', async (_rule, body) => {
    const [job] = await unknownJob();
    expect((await resolve(job.id, body)).status).toBe(400);
  });

  it('409: only what is Unknown is resolved, and no job of the platform is linked twice', async () => {
    const { body } = await post([file()]);
    const refused = await resolve<ProblemBody>(body.id, { action: 'create' });
    expect([refused.status, refused.body.type, refused.body.state]).toEqual([
      409,
      'urn:notebridge:problem:wrong-state',
      'Submitted',
    ]);
    const [job] = await unknownJob();
    const taken = await resolve<ProblemBody>(job.id, { action: 'link', jobId: body.jobId });
    expect([taken.status, taken.body.type]).toEqual([409, 'urn:notebridge:problem:job-taken']);
  });
});

it('the end of a job that nobody submitted here is told and its result is there', async () => {
  const { body } = await post([file()]);
  const strange: ComplianceJob = { ...platformJob(body.jobId), jobId: 'elsewhere-1', status: 'processing' };
  mirror.simulator.state.complianceJobs.set(strange.jobId, strange);
  finishJob(mirror.simulator.state, strange);
  await told('elsewhere-1');
  expect(await ended('elsewhere-1')).toMatchObject({
    state: 'Completed',
    files: [],
    result: { jobId: 'elsewhere-1' },
  });
});

it('without states in the contract the answer after the webhook is the result; before it, or when it is lost, each other answer is shown and told', async () => {
  const PLATFORM_CONTRACT = await contractFile(['getComplianceJob']);
  const env = { PLATFORM_CONTRACT, PLATFORM_TIMEOUT_SECONDS: '60', COMPLIANCE_REFRESH_AFTER_SECONDS: '0.2' };
  const other = await newMirror({ platform: PLATFORM, env });
  const stateless = await other.start();
  const { state } = other.simulator;
  state.settings = { ...state.settings, webhookUrl: `${stateless.url}/webhooks/platform` };
  const { body } = await post([file()], {}, stateless);
  const look = async () => (await stateless.call<ComplianceJobResponse>('GET', `/v1/compliance/jobs/${body.id}`)).body;
  const answered = async () => {
    const { body: page } = await stateless.call<Page<FeedEventResponse>>('GET', '/v1/events?limit=200');
    return page.items.filter(({ data }) => data.jobId === body.jobId).map(({ type }) => type);
  };
  const running = await until('it is looked at', async () => {
    const shown = await look();
    return shown.result === null ? undefined : shown;
  });
  expect(running).toMatchObject({ state: 'Submitted', result: { status: 'processing' } });
  await until('it is told', async () => (await answered()).length === 1);

  // Its event is lost: what the platform answers is there all the same.
  state.settings = { ...state.settings, webhookUrl: '' };
  const job = state.complianceJobs.get(body.jobId ?? '') ?? fail('no such job');
  finishJob(state, job);
  await until('the other answer is shown', async () => {
    const { result } = await look();
    return (result as { status: string }).status === 'completed';
  });
  expect((await look()).state).toBe('Submitted');
  await until('it is told', async () => (await answered()).length === 2);
  expect(await answered()).toEqual(['compliance.answered', 'compliance.answered']);

  // The event comes at last.
  state.settings = { ...state.settings, webhookUrl: `${stateless.url}/webhooks/platform` };
  state.deliveries.send({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId: job.jobId } });
  await until('its end is known', async () => {
    const shown = await look();
    return shown.state === 'Completed' && shown.result !== null;
  });
  await until('it is told', async () => (await answered()).includes('compliance.completed'));
});

it('nothing Completed stays without its result: a 404 is asked again, and can be resolved meanwhile', async () => {
  const gone = (jobId: string | null) =>
    mirror.trouble({
      operation: 'getComplianceJob',
      kind: 'status',
      status: 404,
      count: null,
      match: { jobId: jobId ?? '' },
    });
  const [{ body: comes }, { body: never }] = [await post([file()]), await post([file()])];
  gone(comes.jobId);
  gone(never.jobId);
  for (const { jobId } of [comes, never]) finishJob(mirror.simulator.state, platformJob(jobId));
  for (const { id } of [comes, never]) {
    const lost = await until('it is not there', async () => {
      const shown = await show(id);
      return shown.error ? shown : undefined;
    });
    expect([lost.state, lost.result, lost.error?.code]).toEqual(['Completed', null, 'gone']);
  }
  const { rows } = await sql.query('SELECT due_at IS NOT NULL AS again FROM compliance_jobs WHERE id = ANY ($1)', [
    [comes.id, never.id],
  ]);
  expect(rows).toEqual([{ again: true }, { again: true }]);
  expect((await resolve(never.id, { action: 'abandon' })).body).toMatchObject({ state: 'Abandoned' });
  mirror.simulator.state.faults.clear();
  expect((await hurriedEnd(comes.id)).state).toBe('Completed');
});

it('a process that is killed in the middle of a look-up holds the job only until it counts as dead', async () => {
  const other = await newMirror({ platform: PLATFORM, env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
  const first = await other.start();
  other.hold({ operation: 'getComplianceJob' });
  const { body } = await post([file()], {}, first);
  finishJob(other.simulator.state, other.simulator.state.complianceJobs.get(body.jobId ?? '') ?? fail('no such job'));
  await until('its look-up is under way', () => other.arrivals('getComplianceJob') > 0);
  await first.kill();
  const next = await other.start();
  // As if the seconds had passed for which the first counts as alive.
  await other.sql(`WITH gone AS (
      UPDATE workers SET alive_until = now() WHERE id = (SELECT lease_owner FROM compliance_jobs WHERE id = '${body.id}'))
    UPDATE compliance_jobs SET lease_safe_at = now() WHERE id = '${body.id}'`);
  await until('its result is there', async () => {
    const answer = await next.call<ComplianceJobResponse>('GET', `/v1/compliance/jobs/${body.id}`);
    return answer.body.result !== null && answer.body.state === 'Completed';
  });
});

it('a 403 for one job alone counts as a failure of that job, and keeps no other from its look-up', async () => {
  listen(false);
  const { body: refused } = await post([file()]);
  const match = { jobId: refused.jobId ?? '' };
  mirror.trouble({ operation: 'getComplianceJob', kind: 'forbid', count: null, match });
  const { body: usual } = await post([file()]);
  await until('it is taken for its own', async () => {
    await hurry();
    const { rows } = await sql.query('SELECT failures FROM compliance_jobs WHERE id = $1', [refused.id]);
    return rows[0].failures > 0;
  });
  finishJob(mirror.simulator.state, platformJob(usual.jobId));
  expect((await hurriedEnd(usual.id)).state).toBe('Completed');
});

it('whatever is killed and cut, no request is submitted twice: each stands once at the platform or waits for a person', async () => {
  const REQUESTS = 40;
  const KILLS = 3;
  const SENDERS = 6;
  const other = await newMirror({ platform: { stepMs: 0 } });
  let running = await other.start();
  other.trouble({ operation: 'submitComplianceJob', kind: 'commit-then-cut', probability: 0.15, count: 1_000 });
  other.trouble({ operation: 'submitComplianceJob', kind: 'slow', probability: 0.3, count: 1_000, ms: 300 });
  const send = (name: string) =>
    until(`${name} is answered for good`, async () => {
      const key = { 'idempotency-key': name };
      const answer = await post<ComplianceJobResponse>([file(name)], key, running).catch(() => undefined);
      return answer && answer.status < 300 ? answer.body.id : undefined;
    });
  const names = Array.from({ length: REQUESTS }, (_, at) => `request-${at}`);
  const ids = new Map<string, string>();
  const waiting = [...names];
  const sender = async () => {
    for (let name = waiting.shift(); name; name = waiting.shift()) ids.set(name, await send(name));
  };
  const sending = Promise.all(Array.from({ length: SENDERS }, sender));
  for (let kill = 1; kill <= KILLS; kill += 1) {
    await until('some more were settled', () => ids.size >= (kill * REQUESTS) / (KILLS + 1));
    await running.kill();
    // What the dead process held is free at once, instead of when its leases end.
    await other.sql("UPDATE idempotency_records SET lease_until = now() - interval '1 second'");
    running = await other.start();
  }
  await sending;
  await other.sql("UPDATE compliance_jobs SET lease_safe_at = now() WHERE state = 'Requested'");
  const stateOf = async (id: string) =>
    (await running.call<ComplianceJobResponse>('GET', `/v1/compliance/jobs/${id}`)).body.state;
  const open = "SELECT 1 FROM compliance_jobs WHERE state = 'Requested'";
  await until('every request is settled', async () => (await other.sql(open)).length === 0);
  const made = [...other.simulator.state.complianceJobs.values()].flatMap(({ files }) => files.map(({ id }) => id));
  expect(made).toHaveLength(new Set(made).size);
  for (const [name, id] of ids) {
    const state = await stateOf(id);
    expect([name, ['Submitted', 'Unknown'].includes(state)]).toEqual([name, true]);
    if (state === 'Submitted') expect(made).toContain(name);
  }
});

it('501: what the contract does not tell, with the settings', async () => {
  const bare = await mirror.start({
    PLATFORM_CONTRACT: await contractFile(['submitComplianceJob', 'complianceUploadUrl']),
  });
  const call = (path: string) => bare.call<ProblemBody>('POST', path, { body: { files: [{ id: 'a', url: 'x' }] } });
  const submitted = await call('/v1/compliance/jobs');
  expect([submitted.status, submitted.body.missing]).toEqual([
    501,
    [
      'PLATFORM_CONTRACT: operations.submitComplianceJob.method',
      'PLATFORM_CONTRACT: operations.submitComplianceJob.path',
    ],
  ]);
  const url = await bare.call<ProblemBody>('POST', '/v1/compliance/upload-url', { body: {} });
  expect([url.status, url.body.missing]).toEqual([
    501,
    [
      'PLATFORM_CONTRACT: operations.complianceUploadUrl.response.uploadUrl',
      'PLATFORM_CONTRACT: operations.complianceUploadUrl.response.fileUrl',
      'PLATFORM_CONTRACT: operations.complianceUploadUrl.upload.method',
    ],
  ]);
});
