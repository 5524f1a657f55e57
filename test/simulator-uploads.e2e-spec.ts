import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import path from 'node:path';
import { buildSimulator, type Simulator } from '../simulator/app.js';
import { readContract } from '../src/platform/contract/contract.js';
import { OPERATION_NAMES } from '../src/platform/contract/operations.js';
import { COMPLIANCE_CRITERIA } from '../src/platform/contract/wire-types.js';
import { callSimulator, newSimulatedClient, newSimulatedProvider } from './support/simulator-call.js';

let simulator: Simulator;
let nowMs = 1_800_000_000_000;

beforeAll(async () => {
  simulator = await buildSimulator({ seed: 4, nowMs: () => nowMs, settings: { stepMs: 0 } });
});
beforeEach(() => simulator.state.reset());
afterAll(() => simulator.close());

const call = (method: string, route: string, body?: unknown) => callSimulator(simulator, method, route, body);
const put = (url: string, body: string, headers: Record<string, string> = {}) =>
  fetch(url, { method: 'PUT', body, headers });

async function recordingUrls(): Promise<{ uploadUrl: string; fileUrl: string }> {
  const answer = await call('POST', '/api/v1/recording-url', { fileName: 'one.wav', contentType: 'audio/wav' });
  const { upload, file } = answer.json<{ upload: { url: string }; file: { url: string } }>();
  return { uploadUrl: upload.url, fileUrl: file.url };
}

async function uploadedPdf(content = '%PDF-1.7 …'): Promise<string> {
  const { uploadUrl = '', fileUrl = '' } = (await call('GET', '/compliance/upload-url')).json();
  expect((await put(uploadUrl, content, { 'content-type': 'application/pdf' })).status).toBe(200);
  return fileUrl;
}

const submit = (body: object) => call('POST', '/compliance/job', body);
const advanceJob = (jobId: string, body: object = {}) =>
  call('POST', `/_simulator/compliance-jobs/${jobId}/advance`, body);
const lastEvent = () => JSON.parse(simulator.state.deliveries.list().at(-1)?.body ?? '{}');

it('the contract file gives the service every operation', () => {
  const contract = readContract(path.join(__dirname, '../simulator/contract.json'));
  const uploads = ['recordingUploadUrl', 'complianceUploadUrl'] as const;
  const missing = OPERATION_NAMES.flatMap((name) => contract.missingFor(name));
  expect([...missing, ...uploads.flatMap((name) => contract.missingFor(name, 'upload'))]).toEqual([]);
});

describe('uploads', () => {
  it('an upload is counted and hashed', async () => {
    const { uploadUrl } = await recordingUrls();
    expect((await put(uploadUrl, 'sound')).status).toBe(200);
    const sha256 = createHash('sha256').update('sound').digest('hex');
    expect(simulator.state.uploads.list()).toMatchObject([{ bytes: 5, sha256, attempts: 1 }]);
  });

  it('411: a body without Content-Length', async () => {
    const { uploadUrl } = await recordingUrls();
    const sending = request(uploadUrl, { method: 'PUT', headers: { 'transfer-encoding': 'chunked' } });
    sending.end('sound');
    const [response] = await once(sending, 'response');
    response.resume();
    expect(response.statusCode).toBe(411);
  });

  it('403: a URL that is not signed, or that has expired', async () => {
    const { uploadUrl } = await recordingUrls();
    expect((await put(uploadUrl.replace(/token=.*/, 'token=0'), 'sound')).status).toBe(403);
    nowMs += 901_000;
    expect((await put(uploadUrl, 'sound')).status).toBe(403);
  });

  it('400: the API key has no business at a pre-signed URL', async () => {
    const { uploadUrl } = await recordingUrls();
    expect((await put(uploadUrl, 'sound', { authorization: 'Bearer x' })).status).toBe(400);
  });

  it('a broken upload is cut and can be sent again', async () => {
    const { uploadUrl } = await recordingUrls();
    await call('PATCH', '/_simulator/settings', { breakUploadsAfterBytes: 3 });
    await expect(put(uploadUrl, 'sound')).rejects.toThrow();
    expect(simulator.state.uploads.list()).toMatchObject([{ sha256: null }]);
    await call('PATCH', '/_simulator/settings', { breakUploadsAfterBytes: 0 });
    expect((await put(uploadUrl, 'sound')).status).toBe(200);
    expect(simulator.state.uploads.list()).toMatchObject([{ bytes: 5, attempts: 2 }]);
  });

  it('a browser may upload from any page', async () => {
    const { uploadUrl } = await recordingUrls();
    const preflight = await fetch(uploadUrl, { method: 'OPTIONS' });
    expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([204, 'PUT']);
  });

  it.each([
    ['Done', 'a recording that was uploaded', true],
    ['Error', 'a recording that never was', false],
  ])('a session ends %s from %s', async (state, _what, uploaded) => {
    const providerUserId = await newSimulatedProvider(simulator);
    const clientUserId = await newSimulatedClient(simulator, providerUserId);
    const { uploadUrl, fileUrl } = await recordingUrls();
    if (uploaded) await put(uploadUrl, 'sound');
    const created = await call('POST', '/api/v2/therapy-session', {
      providerUserId,
      clientUserId,
      sessionType: 'Soap',
      input: { recording: { recordingUrls: [fileUrl], recordingContent: 'Recording' } },
    });
    const { sessionId } = created.json();
    const advanced = await call('POST', `/_simulator/sessions/${sessionId}/advance`, { toEnd: true });
    expect(advanced.json().state).toBe(state);
    const { recordingUrl = '' } = (await call('GET', `/api/v2/therapy-session/${sessionId}`)).json();
    expect((await fetch(recordingUrl)).status).toBe(200);
    nowMs += 901_000;
    expect((await fetch(recordingUrl)).status).toBe(403);
  });
});

describe('compliance', () => {
  it('a job runs to its end, tells its id alone, and has a result for each criterion', async () => {
    const criteria = ['plan', 'risk_assessment'];
    const { jobId = '' } = (await submit({ files: [{ id: 'f-1', url: await uploadedPdf() }], criteria })).json();
    expect((await call('GET', `/compliance/job/${jobId}`)).json()).toEqual({ jobId, status: 'processing' });
    await advanceJob(jobId);
    expect(lastEvent()).toEqual({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId } });
    expect((await call('GET', `/compliance/job/${jobId}`)).json()).toMatchObject({
      status: 'completed',
      files: [{ id: 'f-1', results: [{ criterion: 'plan' }, { criterion: 'risk_assessment' }] }],
    });
  });

  it('a group, or no criteria at all, checks everything', async () => {
    const files = [{ id: 'f-1', url: await uploadedPdf() }];
    for (const more of [{}, { criteriaGroups: ['therapy_notes'] }]) {
      const { jobId = '' } = (await submit({ files, ...more })).json();
      expect(simulator.state.complianceJobs.get(jobId)?.criteria).toEqual(COMPLIANCE_CRITERIA);
    }
  });

  it('only PDF files are supported: another content fails the job', async () => {
    const { jobId = '' } = (await submit({ files: [{ id: 'f-1', url: await uploadedPdf('GIF89a') }] })).json();
    await advanceJob(jobId);
    expect(lastEvent()).toEqual({ eventType: 'COMPLIANCE_JOB_FAILED', payload: { jobId } });
  });

  it('a job may be ordered to fail, and ends once', async () => {
    const { jobId = '' } = (await submit({ files: [{ id: 'f-1', url: await uploadedPdf() }] })).json();
    await advanceJob(jobId, { willFail: true });
    await advanceJob(jobId, { willFail: false });
    expect((await call('GET', `/compliance/job/${jobId}`)).json().status).toBe('failed');
    expect(simulator.state.deliveries.list()).toHaveLength(1);
  });

  it.each<[string, (url: string) => object]>([
    ['files is required', () => ({})],
    ['files is not empty', () => ({ files: [] })],
    ['a file has an id', (url) => ({ files: [{ url }] })],
    ['a file has a url', () => ({ files: [{ id: 'f-1' }] })],
    ['a url comes from the upload-url endpoint', () => ({ files: [{ id: 'f-1', url: 'https://a.test/x.pdf' }] })],
    ['criteria are on the list', (url) => ({ files: [{ id: 'f-1', url }], criteria: ['handwriting'] })],
    ['criteriaGroups are on the list', (url) => ({ files: [{ id: 'f-1', url }], criteriaGroups: ['all'] })],
  ])('400: %s', async (_rule, body) => {
    expect((await submit(body(await uploadedPdf()))).status).toBe(400);
  });

  it('400: a file must be uploaded before it is listed', async () => {
    const { fileUrl } = (await call('GET', '/compliance/upload-url')).json();
    expect((await submit({ files: [{ id: 'f-1', url: fileUrl }] })).status).toBe(400);
  });

  it('400: a PDF is uploaded as application/pdf', async () => {
    const { uploadUrl = '' } = (await call('GET', '/compliance/upload-url')).json();
    expect((await put(uploadUrl, '%PDF-', { 'content-type': 'text/plain' })).status).toBe(400);
  });

  it('404: an unknown job', async () => {
    expect((await call('GET', '/compliance/job/nobody')).status).toBe(404);
  });

  it('a smart edit is told by job id', async () => {
    const body = { eventType: 'SMART_EDIT_JOB_FAILED' };
    const { jobId } = (await call('POST', '/_simulator/smart-edits', body)).json();
    expect(lastEvent()).toEqual({ eventType: 'SMART_EDIT_JOB_FAILED', payload: { jobId } });
  });
});
