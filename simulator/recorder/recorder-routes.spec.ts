import { callSimulator, newSimulatedClient, newSimulatedProvider } from '../../test/support/simulator-call.js';
import { buildSimulator, type Simulator } from '../app.js';

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

const initiate = (body: object, key?: string) =>
  callSimulator(simulator, 'POST', '/authentication/initiate-auth', body, key);
const token = async (userId = provider) => (await initiate({ userId })).json().otpToken ?? '';
const open = (route: string, query: Record<string, string>) =>
  fetch(`${simulator.url}${route}?${new URLSearchParams(query)}`);
const launch = (sessionToken: string, more: Record<string, string> = {}) =>
  open('/recorder', { variant: 'in-person', contractId: client, sessionToken, ...more });
const cookieOf = (page: Response) => page.headers.get('set-cookie')?.split(';')[0] ?? '';

/** Does what the page's script does: gets a URL, uploads, creates the session. */
async function record(cookie: string): Promise<Response> {
  const headers = { cookie, 'content-type': 'application/json' };
  const post = (route: string, body: object) =>
    fetch(`${simulator.url}${route}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const urls = await post('/recorder/uploads', { fileName: 'one.wav' });
  if (!urls.ok) return urls;
  const { uploadUrl, fileUrl } = (await urls.json()) as { uploadUrl: string; fileUrl: string };
  await fetch(uploadUrl, { method: 'PUT', body: 'sound' });
  return post('/recorder/sessions', { contractId: client, fileUrl });
}

it('issues a token only with the key, and only for a provider', async () => {
  expect((await initiate({ userId: provider }, 'wrong')).status).toBe(403);
  for (const [userId, status] of [
    [undefined, 400],
    ['nobody', 404],
    [client, 400],
    [provider, 200],
  ] as const)
    expect([userId, (await initiate({ userId })).status]).toEqual([userId, status]);
});

it('shows the parameters of the recorder, but not the token', async () => {
  const otp = await token();
  const page = await launch(otp, { variant: 'virtual', redirectUrl: 'https://ehr.example.test/back?a=1&b="2"' });
  const html = await page.text();
  expect([page.status, page.headers.get('cache-control')]).toEqual([200, 'no-store']);
  for (const part of ['virtual', client, 'Back to your records', 'https://ehr.example.test/back?a=1&#38;b=&#34;2&#34;'])
    expect(html).toContain(part);
  expect(html).not.toContain(otp);
  expect(await (await launch(await token())).text()).not.toContain('Back to your records');
});

it('rejects a wrong query, and leaves the token valid for one page', async () => {
  const otp = await token();
  const wrong: Record<string, string>[] = [
    { variant: 'phone' },
    { contractId: 'c-1' },
    { sessionToken: 'made-up' },
    { redirectUrl: '/back' },
    { redirectUrl: 'javascript:alert(1)' },
  ];
  for (const query of wrong) {
    const page = await launch(otp, query);
    expect([query, page.status, await page.text()]).toEqual([query, 400, expect.stringContaining('did not start')]);
  }
  expect((await launch(otp)).status).toBe(200);
  expect((await launch(otp)).status).toBe(400);
  expect((await open('/unuploaded-sessions', { sessionToken: otp })).status).toBe(400);
});

it("does not start for another provider's client, nor with an expired token", async () => {
  const stranger = await newSimulatedProvider(simulator, 'other@example.test');
  expect((await launch(await token(stranger))).status).toBe(400);
  const otp = await token();
  nowMs += 301_000;
  expect((await launch(otp)).status).toBe(400);
});

it('creates a session after an upload, with the usual webhooks', async () => {
  const created = await record(cookieOf(await launch(await token())));
  expect(created.status).toBe(201);
  const { sessionId } = (await created.json()) as { sessionId: string };
  const lastEvent = JSON.parse(simulator.state.deliveries.list().at(-1)?.body ?? '');
  expect(lastEvent).toMatchObject({ eventType: 'SESSION_CREATED', sessionId, providerUserId: provider });
  expect(simulator.state.sessions.find(sessionId)?.clientUserIds).toEqual([client]);
  expect((await record('recorder=made-up')).status).toBe(403);
});

it('only its provider can finish an interrupted upload at /unuploaded-sessions', async () => {
  const page = await open('/unuploaded-sessions', { sessionToken: await token() });
  expect(await page.text()).toContain(provider);
  expect((await record(cookieOf(page))).status).toBe(201);
  const stranger = await newSimulatedProvider(simulator, 'other@example.test');
  const other = await open('/unuploaded-sessions', { sessionToken: await token(stranger) });
  expect((await record(cookieOf(other))).status).toBe(400);
});

it.each(['recorder', 'unuploaded'])('the script of %s is valid JavaScript', async (name) => {
  const script = await (await fetch(`${simulator.url}/recorder/${name}.js`)).text();
  expect(() => new Function(script)).not.toThrow();
});
