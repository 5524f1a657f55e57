import type pg from 'pg';
import { type CommitProxy, startCommitProxy } from '../harness/commit-proxy.js';
import type { Service } from '../harness/service.js';
import { startTcpProxy, type TcpProxy } from '../harness/tcp-proxy.js';
import { until } from '../harness/until.js';
import type { ComplianceJobResponse, ComplianceUploadResponse } from '../src/compliance/compliance.dto.js';
import type { Problem } from '../src/http/problem/problem.js';
import { ADMIN_KEY } from './support/app.js';
import { type Mirror, useMirrors } from './support/service.js';

/** Milliseconds of an answer that the test releases. */
const HELD_MS = 3_600_000;

/** Milliseconds for which whoever submitted, or a shutdown, surely waits for the database. */
const CALLER_MS = 4_000;
const SHUTDOWN_MS = 6_000;

const PDF = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';

/** The platform has a minute for its answers, and nothing is on its way there but what is submitted. */
const SETTINGS = { PLATFORM_TIMEOUT_SECONDS: '60', COMPLIANCE_REFRESH_AFTER_SECONDS: '3600' };

// Before the hooks of the mirrors, which drop the database.
afterAll(async () => {
  await database?.close();
  await commits?.close();
});
const newMirror = useMirrors();
let mirror: Mirror;
let database: TcpProxy;
let commits: CommitProxy;
let isAway = false;
let awaySince = 0;
let sql: pg.Pool;

beforeAll(async () => {
  mirror = await newMirror({ platform: { stepMs: 0 }, env: SETTINGS });
  sql = mirror.database.sql;
  database = await startTcpProxy(portOf(mirror.database.url));
  commits = await startCommitProxy(portOf(mirror.database.url));
});
afterEach(() => mirror.simulator.state.faults.clear());

const portOf = (url: string) => Number(new URL(url).port);

/** A process that reaches its database through a proxy. */
function startBehind({ port }: { port: number }): Promise<Service> {
  const url = new URL(mirror.database.url);
  url.port = String(port);
  return mirror.start({ DATABASE_URL: url.toString() });
}

interface Submitted<Body> {
  status: number;
  headers: Headers;
  body: Body;
}

/** @param files by their URLs, instead of a PDF */
async function submit<Body>(service: Service, key?: string, files?: object[]): Promise<Submitted<Body>> {
  const form = new FormData();
  form.append('files', new Blob([PDF], { type: 'application/pdf' }), 'visit.pdf');
  const response = await fetch(`${service.url}/v1/compliance/jobs`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${ADMIN_KEY}`,
      ...(files && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'idempotency-key': key }),
    },
    body: files ? JSON.stringify({ files }) : form,
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}

const platformJobs = () => [...mirror.simulator.state.complianceJobs.values()];

/** Submits, and takes the database away while the platform works on its answer, which is there at the end. */
const submitAsItGoes = (service: Service, key?: string) =>
  asItGoes(service, () => submit<ComplianceJobResponse>(service, key));

async function asItGoes<Answer>(
  service: Service,
  call: () => Promise<Answer>,
): Promise<{ answering: Promise<Answer> }> {
  await until('its database is there', async () => (await fetch(`${service.url}/health/ready`)).ok);
  mirror.trouble({ operation: 'submitComplianceJob', kind: 'slow', ms: HELD_MS });
  const before = mirror.arrivals('submitComplianceJob');
  const answering = call();
  answering.catch(() => undefined); // seen by whoever awaits it
  await until('the platform has the submission', () => mirror.arrivals('submitComplianceJob') > before);
  await goAway();
  mirror.simulator.state.timers.cancelAll();
  await until('the platform has answered', () => lastStatus() !== null);
  return { answering };
}

const lastStatus = () =>
  mirror.simulator.state.arrivals.list().findLast(({ operation }) => operation === 'submitComplianceJob')?.status;

async function goAway(): Promise<void> {
  isAway = true;
  awaySince = performance.now();
  await database.cut();
}

/** Plays an outage that is shorter than the service's patience: again, where a stalled machine made it longer. */
async function withinPatience<T>(patienceMs: number, scenario: () => Promise<T>): Promise<T> {
  for (;;) {
    const outcome = await scenario();
    if (performance.now() - awaySince < patienceMs) return outcome;
  }
}

/** The database is back; connections that it has already stay. */
async function comeBack(): Promise<void> {
  if (isAway) await database.restore();
  isAway = false;
}

/** Resolves when a process has noticed that its database is away. */
const notReady = ({ url }: Service) =>
  until('it notices', async () => (await fetch(`${url}/health/ready`)).status === 503);

const kept = async () => {
  const { rows } = await sql.query<{ id: string; state: string; job_id: string | null }>(
    'SELECT id, state, job_id FROM compliance_jobs ORDER BY created_at DESC LIMIT 1',
  );
  return rows[0];
};

describe('a database that is away when the platform answers a submission', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startBehind(database);
  });
  afterEach(comeBack);

  it('for long: after the commit the answer is 202 with the id, under which the outcome will stand by itself', async () => {
    const { answering } = await submitAsItGoes(service, 'held-1');
    const { status, headers, body } = await answering;
    expect([status, body]).toMatchObject([202, { state: 'Requested', jobId: null, files: ['file-1'], error: null }]);
    expect(headers.get('location')).toBe(`/v1/compliance/jobs/${body.id}`);
    await comeBack();
    const answered = await until('its outcome is kept', async () => {
      const row = await kept();
      return row?.state === 'Submitted' ? row : undefined;
    });
    expect(answered).toEqual({ id: body.id, state: 'Submitted', job_id: platformJobs().at(-1)?.jobId });
    // The key is held for its lease, as after a crash.
    await sql.query("UPDATE idempotency_records SET lease_until = now() - interval '1 second'");
    const again = await submit<ComplianceJobResponse>(service, 'held-1');
    expect([again.status, again.body.id, again.body.jobId]).toEqual([201, body.id, answered.job_id]);
    expect(platformJobs()).toHaveLength(1);
  });

  it('for long, after a person had it submitted again: the answer has the id, and no third one is submitted', async () => {
    mirror.trouble({ operation: 'submitComplianceJob', kind: 'refuse' });
    const { body: unknown } = await submit<ComplianceJobResponse>(service);
    expect(unknown.state).toBe('Unknown');
    const count = platformJobs().length;
    const resolve = () =>
      service.call<ComplianceJobResponse>('POST', `/v1/compliance/jobs/${unknown.id}/resolve`, {
        body: { action: 'create' },
      });
    const { answering } = await asItGoes(service, resolve);
    const { status, body } = await answering;
    expect([status, body]).toMatchObject([200, { id: unknown.id, state: 'Requested', jobId: null, error: null }]);
    await comeBack();
    await until('its outcome is kept', async () => (await kept())?.state === 'Submitted');
    expect(platformJobs()).toHaveLength(count + 1);
  });

  it('for a moment: the caller hears nothing of it', async () => {
    const { status, body } = await withinPatience(CALLER_MS, async () => {
      const { answering } = await submitAsItGoes(service);
      await notReady(service);
      await comeBack();
      return answering;
    });
    expect([status, body]).toMatchObject([201, { state: 'Submitted', jobId: platformJobs().at(-1)?.jobId }]);
  });

  it('a refusal is told all the same, and kept when it is back', async () => {
    await until('its database is there', async () => (await fetch(`${service.url}/health/ready`)).ok);
    const { body: target } = await service.call<ComplianceUploadResponse>('POST', '/v1/compliance/upload-url', {
      body: {},
    });
    const { state } = mirror.simulator;
    const before = state.settings;
    state.settings = { ...before, latencyMs: [HELD_MS, HELD_MS] };
    const travelling = jest.spyOn(state.timers, 'sleep');
    const answering = submit<ReturnType<Problem['details']>>(service, undefined, [{ id: 'a', url: target.url }]);
    await until('the submission is on its way', () => travelling.mock.calls.length > 0);
    travelling.mockRestore();
    state.settings = before;
    await goAway();
    state.timers.cancelAll();
    const { status, body } = await answering;
    expect([status, body.type]).toEqual([400, 'urn:notebridge:problem:platform-rejected']);
    expect((await kept())?.state).toBe('Requested');
    await comeBack();
    await until('it is kept', async () => (await kept())?.state === 'Rejected');
  });

  it('while the service stops: it leaves when the outcome is kept', async () => {
    const row = await withinPatience(SHUTDOWN_MS, async () => {
      const leaving = await startBehind(database);
      const { answering } = await submitAsItGoes(leaving);
      await notReady(leaving);
      const stopped = leaving.kill('SIGTERM');
      const isLeaving = () =>
        fetch(`${leaving.url}/health/live`).then(
          ({ status }) => status === 503,
          () => true,
        );
      await until('it takes nobody any more', isLeaving);
      await comeBack();
      await stopped;
      await answering.catch(() => undefined);
      return kept();
    });
    expect(row).toMatchObject({ state: 'Submitted', job_id: platformJobs().at(-1)?.jobId });
  });
});

it('an intent whose commit is not confirmed is submitted once, under its one id', async () => {
  const service = await startBehind(commits);
  const before = [platformJobs().length, commits.lost()];
  commits.loseAnswerTo('INSERT INTO compliance_jobs');
  const { status, body } = await submit<ComplianceJobResponse>(service);
  expect([status, body.state, body.jobId]).toEqual([201, 'Submitted', platformJobs().at(-1)?.jobId]);
  expect([platformJobs().length, commits.lost()]).toEqual([(before[0] ?? 0) + 1, (before[1] ?? 0) + 1]);
  await service.kill();
});

it('a commit whose confirmation is lost is no fault: the outcome is stored once more', async () => {
  const service = await startBehind(commits);
  const before = commits.lost();
  commits.loseCommitAfter('UPDATE compliance_jobs SET job_id');
  const { status, body } = await submit<ComplianceJobResponse>(service);
  expect([commits.lost() - before, status, body.state, body.jobId]).toEqual([
    1,
    201,
    'Submitted',
    platformJobs().at(-1)?.jobId,
  ]);
  await service.kill();
});
