import { takeStep } from '../../simulator/sessions/session-run.js';
import type { NewApiKeyResponse } from '../../src/access/keys/api-keys.dto.js';
import type { NotesResponse, SessionResponse } from '../../src/sessions/model/session-view.js';
import { texts, useArrivingSessions } from '../sessions/arriving-sessions.js';
import { axeFindings, describeInBrowser, useBrowser } from '../support/browser.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);

const newKey = async (...scopes: string[]) =>
  (await world.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body: { name: 'browser', scopes } })).body.key;

/** Gives the provider and the client of the sessions their names. */
async function nameTheirPeople(): Promise<void> {
  const ada = { firstName: 'Ada', lastName: 'Osei', email: 'ada@example.test' };
  const noor = { firstName: 'Noor', lastName: 'Haddad', providers: ['p-1'] };
  await world.call('PUT', '/v1/providers/p-1', { body: ada });
  await world.call('PUT', '/v1/clients/c-1', { body: noor });
  await world.settle();
}

describeInBrowser('a session with two revisions of its notes', () => {
  const browser = useBrowser();
  let id: string;
  let first: NotesResponse;
  let second: NotesResponse;

  beforeEach(async () => {
    const session = sessions.newSession({ noteTemplateIds: [SOAP], partnerAppointmentId: 'visit-1' });
    sessions.toEnd(session);
    first = await sessions.read(session, 1);
    await world.call('PATCH', `/v1/sessions/${session.sessionId}`, { body: { noteTemplateIds: [SOAP] } });
    while (session.nextStep) takeStep(world.platform.simulator.state, session);
    second = await sessions.read(session, 2);
    id = (await sessions.show(session.sessionId)).id;
  });

  test('shows its note, the revisions and what changed between them, word by word', async () => {
    const page = await browser.open(world.url, '/sessions');
    await page.getByLabel('Appointment').fill('visit-1');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/appointment=visit-1/);
    await page.getByRole('link', { name: id }).click();
    const note = page.getByRole('article');
    for (const text of texts(second)) await note.getByText(text, { exact: true }).first().waitFor();
    await note.getByRole('button', { name: 'Revisions (2)' }).click();
    await note.locator('ins', { hasText: '2' }).first().waitFor();
    await note.locator('del', { hasText: '1' }).first().waitFor();
    await note.getByLabel('Show').selectOption('1');
    await note.getByLabel('Compare with').selectOption('');
    for (const text of texts(first)) await note.getByText(text, { exact: true }).first().waitFor();
    await page.getByText('Transcript').click();
    await page.getByText('Good to see you again').waitFor();
    await page.getByText('Speaker A: p-1 (provider)').waitFor();
    await page.getByText('Insights').click();
    await page.getByRole('table', { name: 'Talking ratio' }).getByRole('link', { name: 'c-1' }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
  });

  test('names its people with links to their pages, by one request for a page of rows', async () => {
    await nameTheirPeople();
    const page = await browser.open(world.url);
    const names: string[] = [];
    page.on('request', (request) => request.url().endsWith('/v1/people/names') && names.push(request.url()));
    sessions.toEnd(sessions.newSession());
    await world.settle();
    await page.goto('/console/sessions');
    await page.getByRole('link', { name: 'Ada Osei' }).nth(1).waitFor();
    expect(await page.getByRole('link', { name: 'Noor Haddad' }).count()).toBe(2);
    expect(names).toHaveLength(1);

    await page.getByRole('link', { name: id }).click();
    const facts = page.getByRole('region', { name: 'Facts' });
    await facts.getByText('c-1', { exact: true }).waitFor();
    await facts.getByText('SOAP note').waitFor();
    await page.getByRole('article', { name: 'Notes by template SOAP note' }).waitFor();
    await facts.getByRole('link', { name: 'Noor Haddad' }).click();
    await page.getByRole('heading', { name: 'Noor Haddad' }).waitFor();
    await page.getByRole('link', { name: 'Sessions', exact: true }).last().click();
    await page.waitForURL(/sessions\?client=c-1/);
    await page.getByRole('link', { name: id }).waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'Ada Osei' }).click();
    await page.getByRole('heading', { name: 'Ada Osei' }).waitFor();
    const clients = page.getByRole('region', { name: 'Clients' });
    await clients.getByRole('row').filter({ hasText: 'Noor Haddad' }).getByRole('link', { name: 'c-1' }).click();
    await page.getByRole('heading', { name: 'Noor Haddad' }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
  });

  test('shows the ids of its people if their names cannot be read, or only to others', async () => {
    await nameTheirPeople();
    const reader = await browser.open(world.url, '/', await newKey('sessions:read', 'notes:read'));
    const page = await browser.open(world.url);
    const asked: string[] = [];
    reader.on('request', (request) => asked.push(request.url()));
    await page.route('**/v1/people/names', (route) => route.fulfill({ status: 500, json: {} }));
    for (const each of [reader, page]) {
      await each.goto(`/console/sessions/${id}`);
      await each.getByRole('region', { name: 'Facts' }).getByText('c-1', { exact: true }).waitFor();
      await each.getByText('Transcript').click();
      await each.locator('.spoken').getByText('p-1').first().waitFor();
      expect(await each.getByText('Haddad').count()).toBe(0);
    }
    await page.getByRole('region', { name: 'Facts' }).getByRole('link', { name: 'p-1' }).waitFor();
    expect(await reader.getByRole('region', { name: 'Facts' }).getByRole('link').count()).toBe(0);
    expect(asked.filter((url) => url.includes('/people/'))).toEqual([]);
  });

  test('shows its insights by person, with bars, and everything that is not known', async () => {
    await nameTheirPeople();
    const page = await browser.open(world.url, `/sessions/${id}`);
    await page.route('**/insights', async (route) => {
      const answer = await route.fetch();
      const { analyticsSummary, topics, ...more } = await answer.json();
      const unknown = { laughter: { [sessions.client]: { loudness: 'warm' } }, version: 'v-7' };
      const insights = { ...more, analyticsSummary: { ...analyticsSummary, ...unknown }, topics };
      insights.topics[0].mood = 'calm';
      await route.fulfill({ response: answer, json: insights });
    });
    await page.getByText('Insights').click();
    const ratio = page
      .getByRole('table', { name: 'Talking ratio' })
      .getByRole('row')
      .filter({ hasText: 'Ada Osei' })
      .locator('td')
      .nth(1);
    const share = await ratio.locator('meter').evaluate((meter) => (meter as unknown as { value: number }).value);
    expect(share).toBeGreaterThan(0);
    expect(Number(await ratio.textContent())).toBeCloseTo(share, 2);
    await page.getByRole('table', { name: 'Laughter' }).getByText('warm').waitFor();
    for (const text of ['v-7', 'calm']) await page.getByText(text, { exact: true }).first().waitFor();
    await page
      .getByRole('region', { name: 'Topics' })
      .getByText(/^\d+:\d\d–\d+:\d\d/)
      .first()
      .waitFor();
    await page.getByText('As the platform returned it').click();
    await page.locator('pre', { hasText: '"loudness": "warm"' }).waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 375, height: 900 });
    expect(await axeFindings(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).toBe(false);
  });

  test('stores nothing that it shows in the browser', async () => {
    const page = await browser.open(world.url, `/sessions/${id}`);
    for (const text of texts(second)) await page.getByText(text, { exact: true }).first().waitFor();
    await page.goto('/console/people?kind=client');
    await page.getByRole('link', { name: 'c-1' }).click();
    await page.getByText('p-1').first().waitFor();
    const stored = await page.evaluate(`(async () => ({
      cookies: document.cookie,
      local: Object.entries(localStorage),
      session: Object.keys(sessionStorage),
      databases: await indexedDB.databases(),
      caches: await caches.keys(),
      workers: (await navigator.serviceWorker.getRegistrations()).length,
    }))()`);
    const lastUse = ['notebridge.last-sign', expect.stringMatching(/^\d+$/)];
    expect(stored).toEqual({ cookies: '', local: [lastUse], session: [], databases: [], caches: [], workers: 0 });
  });

  test('shows the time from event to note on the overview, and its history newest first', async () => {
    const page = await browser.open(world.url);
    const card = page.getByRole('region', { name: 'Note delivery time' });
    await card.getByText(/notes of the last .+: median .+, p95 .+, max/).waitFor();

    await page.goto(`/console/sessions/${id}`);
    const timeline = page.getByRole('region', { name: 'Timeline' });
    for (const name of ['Notes stored', 'SESSION_PROCESSING_COMPLETED'])
      await timeline.getByText(name).first().waitFor();
    const moments = await timeline
      .locator('tbody td:first-child time')
      .evaluateAll((times) => times.map((time) => Date.parse(time.getAttribute('datetime') ?? '')));
    expect(moments).toEqual([...moments].sort((a, b) => b - a));
    const delivery = timeline.getByRole('link', { name: /^delivery / });
    await delivery.first().click();
    await page.getByRole('heading', { name: /^Delivery \d+$/ }).waitFor();
  });

  test('shows no text to a key without notes:read', async () => {
    const page = await browser.open(world.url, `/sessions/${id}`, await newKey('sessions:read'));
    await page.getByText('notes:read').waitFor();
    await page.locator('main').getByText('visit-1').first().waitFor();
    const shown = (await page.locator('main').textContent()) ?? '';
    expect(texts(second).length).toBeGreaterThan(0);
    expect(texts(second).filter((text) => shown.includes(text))).toEqual([]);
    expect(await page.getByText('Transcript').count()).toBe(0);
  });

  test('has deliveries that can be replayed: one, or exactly those that were counted', async () => {
    const [delivery] = await world.sql<{ id: string; at: Date }>(
      // Deliveries that arrive together may be processed in another order than that of their ids.
      'SELECT id::text, processed_at AS at FROM webhook_deliveries ORDER BY processed_at DESC LIMIT 1',
    );
    const processedAfter = async (at: Date | undefined) => {
      await world.settle();
      return (await world.sql('SELECT FROM webhook_deliveries WHERE processed_at > $1', [at])).length;
    };
    const page = await browser.open(world.url, '/deliveries?state=processed');
    const dialog = page.getByRole('dialog');
    await page.getByRole('link', { name: delivery?.id, exact: true }).click();
    await page.getByRole('button', { name: 'Replay' }).click();
    await dialog.getByRole('button', { name: 'Replay' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await processedAfter(delivery?.at)).toBe(1);

    const count = await processedAfter(new Date(0));
    const before = world.now();
    await page.getByRole('link', { name: 'All deliveries' }).click();
    await page.getByRole('button', { name: 'Replay by filter' }).click();
    await dialog.getByLabel('State').selectOption('processed');
    await dialog.getByRole('button', { name: 'Count' }).click();
    await dialog.getByRole('button', { name: `Replay ${count}` }).click();
    await dialog.getByText(`Replaying ${count} deliveries.`).waitFor();
    expect(await processedAfter(before)).toBe(count);
  });
});

describeInBrowser('an unsettled request or delivery', () => {
  const browser = useBrowser();

  test('is resolved with what is known of the request and the effect of each choice', async () => {
    const { state } = world.platform.simulator;
    world.platform.set({ webhookDropRate: 1 });
    world.platform.injectFault({ operation: 'createSession', kind: 'commit-then-cut' });
    const wish = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], input: { text: { text: 'They spoke.' } } };
    const body = { ...wish, partnerAppointmentId: 'visit-lost' };
    const asked = (await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 60 })).body;
    expect(asked.state).toBe('Unknown');
    const made = state.sessions.list().find(({ partnerAppointmentId }) => partnerAppointmentId === 'visit-lost');

    const reader = await browser.open(world.url, `/sessions/${asked.id}`, await newKey('sessions:read'));
    await reader.getByRole('button', { name: 'the appointment' }).waitFor();
    await reader.getByText('sessions:write').waitFor();
    expect(await reader.getByRole('button', { name: 'Send again' }).count()).toBe(0);

    const page = await browser.open(world.url, '/sessions?state=Unknown');
    await page.getByRole('link', { name: asked.id }).click();
    await page.getByText('Sends the request again.').waitFor();
    await page.getByRole('region', { name: 'Timeline' }).getByText('requested').waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await axeFindings(page, ['color-contrast'])).toEqual([]);
    await page.getByRole('button', { name: 'Link', exact: true }).click();
    const dialog = page.getByRole('dialog');
    const link = async (session: string | undefined) => {
      await dialog.getByLabel('Id of the session on the platform').fill(session ?? '');
      await dialog.getByRole('button', { name: 'Link' }).click();
    };
    await link('nowhere');
    await world.workWhile(dialog.getByRole('alert').waitFor());
    expect(await axeFindings(page)).toEqual([]);
    await link(made?.sessionId);
    await world.workWhile(dialog.waitFor({ state: 'detached' }));
    await page.getByRole('region', { name: 'Timeline' }).getByText('settled').waitFor();
    expect((await sessions.show(asked.id)).sessionId).toBe(made?.sessionId);
  });

  test('is dismissed if it is a delivery of an unknown type', async () => {
    sessions.tell({ eventType: 'SESSION_TELEPORTED' });
    await world.settle();
    const page = await browser.open(world.url, '/deliveries?state=not-understood');
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Dismiss' }).click();
    await page.getByText('No delivery has the state “Not understood”.').waitFor();
  });
});
