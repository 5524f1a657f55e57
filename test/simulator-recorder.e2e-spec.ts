import { buildSimulator, type Simulator } from '../simulator/app.js';
import { callSimulator, newSimulatedClient, newSimulatedProvider } from './support/simulator-call.js';

let simulator: Simulator;
let nowMs = 1_800_000_000_000;
let provider: string;
let client: string;

beforeAll(async () => {
  simulator = await buildSimulator({ seed: 5, nowMs: () => nowMs, settings: { stepMs: 0 } });
});
beforeEach(async () => {
  simulator.state.reset();
  provider = await newSimulatedProvider(simulator);
  client = await newSimulatedClient(simulator, provider);
});
afterAll(() => simulator.close());

async function token(userId = provider): Promise<string> {
  const answer = await callSimulator(simulator, 'POST', '/authentication/initiate-auth', { userId });
  return answer.json().otpToken ?? '';
}

function open(route: string, query: Record<string, string>): Promise<Response> {
  return fetch(`${simulator.url}${route}?${new URLSearchParams(query)}`);
}

const launch = (sessionToken: string, more: Record<string, string> = {}) =>
  open('/recorder', { variant: 'in-person', contractId: client, sessionToken, ...more });

/** What the page's script does: ask for a URL, upload, make the session. */
async function record(cookie: string, contractId = client): Promise<Response> {
  const headers = { cookie, 'content-type': 'application/json' };
  const post = (route: string, body: object) =>
    fetch(`${simulator.url}${route}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const urls = await post('/recorder/uploads', { fileName: 'one.wav' });
  if (!urls.ok) return urls;
  const { uploadUrl, fileUrl } = (await urls.json()) as { uploadUrl: string; fileUrl: string };
  await fetch(uploadUrl, { method: 'PUT', body: 'sound' });
  return post('/recorder/sessions', { contractId, fileUrl });
}

it('initiate-auth: a wrong key is 403, no userId 400, an unknown one 404, a client 400', async () => {
  const ask = (body: object, key?: string) =>
    callSimulator(simulator, 'POST', '/authentication/initiate-auth', body, key).then(({ status }) => status);
  expect(await ask({ userId: provider }, 'wrong')).toBe(403);
  expect(await ask({})).toBe(400);
  expect(await ask({ userId: 'nobody' })).toBe(404);
  expect(await ask({ userId: client })).toBe(400);
  expect(await ask({ userId: provider })).toBe(200);
});

it('the recorder shows what it was launched with, but never the whole token', async () => {
  const otp = await token();
  const page = await launch(otp, { variant: 'virtual', redirectUrl: 'https://ehr.example.test/back?a=1&b="2"' });
  const html = await page.text();
  expect(page.status).toBe(200);
  expect(html).toContain('virtual');
  expect(html).toContain(client);
  expect(html).toContain('Back to your records');
  expect(html).toContain('https://ehr.example.test/back?a=1&#38;b=&#34;2&#34;');
  expect(html).not.toContain(otp);
  expect(page.headers.get('cache-control')).toBe('no-store');
});

it('without redirectUrl no way back is offered', async () => {
  expect(await (await launch(await token())).text()).not.toContain('Back to your records');
});

it.each<[string, Record<string, string>]>([
  ['variant is missing', { variant: '' }],
  ['variant is neither in-person nor virtual', { variant: 'phone' }],
  ['contractId is missing', { contractId: '' }],
  ['contractId is no client', { contractId: 'c-1' }],
  ['sessionToken is missing', { sessionToken: '' }],
  ['sessionToken is unknown', { sessionToken: 'made-up' }],
  ['redirectUrl is not fully formed', { redirectUrl: '/back' }],
  ['redirectUrl is a script', { redirectUrl: 'javascript:alert(1)' }],
])('the recorder does not start when %s, and the token stays good', async (_fault, query) => {
  const otp = await token();
  const page = await launch(otp, query);
  expect(page.status).toBe(400);
  expect(await page.text()).toContain('did not start');
  expect((await launch(otp)).status).toBe(200);
});

it("the recorder does not start for another provider's client", async () => {
  const stranger = await newSimulatedProvider(simulator, 'other@example.test');
  expect((await launch(await token(stranger))).status).toBe(400);
});

it('a token opens one page, once', async () => {
  const otp = await token();
  expect((await launch(otp)).status).toBe(200);
  expect((await launch(otp)).status).toBe(400);
  expect((await open('/unuploaded-sessions', { sessionToken: otp })).status).toBe(400);
});

it('a token expires', async () => {
  const otp = await token();
  nowMs += 301_000;
  expect((await launch(otp)).status).toBe(400);
});

it('after an upload processing starts with the usual webhooks', async () => {
  const page = await launch(await token());
  const cookie = page.headers.get('set-cookie')?.split(';')[0] ?? '';
  const created = await record(cookie);
  expect(created.status).toBe(201);
  const { sessionId } = (await created.json()) as { sessionId: string };
  expect(JSON.parse(simulator.state.deliveries.list().at(-1)?.body ?? '')).toMatchObject({
    eventType: 'SESSION_CREATED',
    sessionId,
    providerUserId: provider,
  });
  expect(simulator.state.sessions.find(sessionId)?.clientUserIds).toEqual([client]);
});

it('without the page nothing can be uploaded', async () => {
  expect((await record('recorder=made-up')).status).toBe(403);
});

it('an interrupted upload is finished from /unuploaded-sessions, which only its provider can', async () => {
  const page = await open('/unuploaded-sessions', { sessionToken: await token() });
  expect(await page.text()).toContain(provider);
  const cookie = page.headers.get('set-cookie')?.split(';')[0] ?? '';
  expect((await record(cookie)).status).toBe(201);
  const stranger = await newSimulatedProvider(simulator, 'other@example.test');
  const other = await open('/unuploaded-sessions', { sessionToken: await token(stranger) });
  expect((await record(other.headers.get('set-cookie')?.split(';')[0] ?? '')).status).toBe(400);
});

it.each([['recorder'], ['unuploaded']])('the script of %s is valid JavaScript', async (name) => {
  const script = await (await fetch(`${simulator.url}/recorder/${name}.js`)).text();
  expect(() => new Function(script)).not.toThrow();
});
