import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { COMPLIANCE_CRITERIA } from '../../src/platform/contract/wire-types.js';
import { callSimulator, newSimulatedClient, newSimulatedProvider } from '../../test/support/simulator-call.js';
import { buildSimulator, type Simulator } from '../app.js';

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

describe('uploads', () => {
  it('counts and hashes an upload, and lets a browser send it from any page', async () => {
    const { uploadUrl } = await recordingUrls();
    expect((await put(uploadUrl, 'sound')).status).toBe(200);
    const sha256 = createHash('sha256').update('sound').digest('hex');
    expect(simulator.state.uploads.list()).toMatchObject([{ bytes: 5, sha256, attempts: 1 }]);
    const preflight = await fetch(uploadUrl, { method: 'OPTIONS' });
    expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([204, 'PUT']);
  });

  it('rejects a body without length, an unsigned or expired URL, and an API key', async () => {
    const { uploadUrl } = await recordingUrls();
    const sending = request(uploadUrl, { method: 'PUT', headers: { 'transfer-encoding': 'chunked' } });
    sending.end('sound');
    const [response] = await once(sending, 'response');
    response.resume();
    expect(response.statusCode).toBe(411);
    expect((await put(uploadUrl, 'sound', { authorization: 'Bearer x' })).status).toBe(400);
    expect((await put(uploadUrl.replace(/token=.*/, 'token=0'), 'sound')).status).toBe(403);
    nowMs += 901_000;
    expect((await put(uploadUrl, 'sound')).status).toBe(403);
  });

  it('cuts an upload, which can then be repeated', async () => {
    const { uploadUrl } = await recordingUrls();
    await call('PATCH', '/_simulator/settings', { breakUploadsAfterBytes: 3 });
    await expect(put(uploadUrl, 'sound')).rejects.toThrow();
    expect(simulator.state.uploads.list()).toMatchObject([{ sha256: null }]);
    await call('PATCH', '/_simulator/settings', { breakUploadsAfterBytes: 0 });
    expect((await put(uploadUrl, 'sound')).status).toBe(200);
    expect(simulator.state.uploads.list()).toMatchObject([{ bytes: 5, attempts: 2 }]);
  });

  it.each([
    ['Done', true],
    ['Error', false],
  ])('a session ends as %s if its recording was uploaded: %s', async (state, uploaded) => {
    const providerUserId = await newSimulatedProvider(simulator);
    const clientUserId = await newSimulatedClient(simulator, providerUserId);
    const { uploadUrl, fileUrl } = await recordingUrls();
    if (uploaded) await put(uploadUrl, 'sound');
    const input = { recording: { recordingUrls: [fileUrl], recordingContent: 'Recording' } };
    const body = { providerUserId, clientUserId, sessionType: 'Soap', input };
    const { sessionId } = (await call('POST', '/api/v2/therapy-session', body)).json();
    const ended = await call('POST', `/_simulator/sessions/${sessionId}/advance`, { toEnd: true });
    expect(ended.json().state).toBe(state);
    const { recordingUrl = '' } = (await call('GET', `/api/v2/therapy-session/${sessionId}`)).json();
    expect((await fetch(recordingUrl)).status).toBe(200);
    nowMs += 901_000;
    expect((await fetch(recordingUrl)).status).toBe(403);
  });
});

describe('compliance', () => {
  const uploadUrls = async () => (await call('GET', '/compliance/upload-url')).json();
  async function uploadedPdf(content = '%PDF-1.7 …'): Promise<string> {
    const { uploadUrl = '', fileUrl = '' } = await uploadUrls();
    expect((await put(uploadUrl, content, { 'content-type': 'application/pdf' })).status).toBe(200);
    return fileUrl;
  }
  const submit = (body: object) => call('POST', '/compliance/job', body);
  const jobOf = async (more: object = {}, content?: string) =>
    (await submit({ files: [{ id: 'f-1', url: await uploadedPdf(content) }], ...more })).json().jobId ?? '';
  const advance = (jobId: string, body: object = {}) =>
    call('POST', `/_simulator/compliance-jobs/${jobId}/advance`, body);
  const show = async (jobId: string) => (await call('GET', `/compliance/job/${jobId}`)).json();
  const lastEvent = () => JSON.parse(simulator.state.deliveries.list().at(-1)?.body ?? '{}');

  it('runs a job to its end, tells its id only, and has a result for each criterion', async () => {
    const jobId = await jobOf({ criteria: ['plan', 'risk_assessment'] });
    expect(await show(jobId)).toEqual({ jobId, status: 'processing' });
    await advance(jobId);
    expect(lastEvent()).toEqual({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId } });
    const results = [{ criterion: 'plan' }, { criterion: 'risk_assessment' }];
    expect(await show(jobId)).toMatchObject({ status: 'completed', files: [{ id: 'f-1', results }] });
    for (const more of [{}, { criteriaGroups: ['therapy_notes'] }])
      expect(simulator.state.complianceJobs.get(await jobOf(more))?.criteria).toEqual(COMPLIANCE_CRITERIA);
  });

  it('fails a job without a PDF, or with willFail, once', async () => {
    await advance(await jobOf({}, 'GIF89a'));
    expect(lastEvent().eventType).toBe('COMPLIANCE_JOB_FAILED');
    const jobId = await jobOf();
    await advance(jobId, { willFail: true });
    await advance(jobId, { willFail: false });
    expect((await show(jobId)).status).toBe('failed');
    expect(simulator.state.deliveries.list()).toHaveLength(2);
  });

  it('rejects requests that violate the specification', async () => {
    const [{ uploadUrl = '', fileUrl }, url] = [await uploadUrls(), await uploadedPdf()];
    expect((await put(uploadUrl, '%PDF-', { 'content-type': 'text/plain' })).status).toBe(400);
    for (const body of [
      {},
      { files: [] },
      { files: [{ url }] },
      { files: [{ id: 'f-1' }] },
      { files: [{ id: 'f-1', url: 'https://a.test/x.pdf' }] },
      { files: [{ id: 'f-1', url: fileUrl }] }, // not uploaded yet
      { files: [{ id: 'f-1', url }], criteria: ['handwriting'] },
      { files: [{ id: 'f-1', url }], criteriaGroups: ['all'] },
    ]) {
      expect([body, (await submit(body)).status]).toEqual([body, 400]);
    }
    expect((await call('GET', '/compliance/job/nobody')).status).toBe(404);
  });
});
