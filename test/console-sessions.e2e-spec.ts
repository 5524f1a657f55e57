import { readFaultRule } from '../simulator/gate/fault-rule.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import type { NewApiKeyResponse } from '../src/access/keys/api-keys.dto.js';
import type { NotesResponse, SessionResponse } from '../src/sessions/model/session-view.js';
import { SOAP, texts, useArrivingSessions } from './support/arriving-sessions.js';
import { axeFindings, describeInBrowser, useBrowser } from './support/browser.js';
import { deliver, signed } from './support/webhook-requests.js';

describeInBrowser('the console', () => {
  const world = useArrivingSessions();
  const browser = useBrowser();

  const newKey = async (...scopes: string[]) => {
    const answer = await world.service.call('POST', '/v1/api-keys', { body: { name: 'browser', scopes } });
    return answer.json<NewApiKeyResponse>().key;
  };
  let id: string;
  let first: NotesResponse;
  let second: NotesResponse;

  beforeAll(async () => {
    const session = world.newSession({ noteTemplateIds: [SOAP], partnerAppointmentId: 'visit-1' });
    world.toEnd(session);
    first = await world.read(session, 1);
    await world.service.call('PATCH', `/v1/sessions/${session.sessionId}`, { body: { noteTemplateIds: [SOAP] } });
    while (session.nextStep) takeStep(world.simulator.state, session);
    second = await world.read(session, 2);
    await world.rested(session);
    id = (await world.show(session.sessionId)).id;
  });

  it('shows a note, its revisions and what changed between them, word by word', async () => {
    const page = await browser.open(world.service.url, '/sessions');
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
  });

  it('says on the overview how long notes took from their event', async () => {
    const page = await browser.open(world.service.url);
    const card = page.getByRole('region', { name: 'From event to note' });
    await card.getByText(/half of the notes were stored within .+ of their event/).waitFor();
  });

  it('shows what happened to a session in the order of time, and leads to each delivery', async () => {
    const page = await browser.open(world.service.url, `/sessions/${id}`);
    const timeline = page.getByRole('region', { name: 'Timeline' });
    for (const name of ['getSession', 'updateSession', 'Notes stored', 'SESSION_PROCESSING_COMPLETED']) {
      await timeline.getByText(name).first().waitFor();
    }
    const moments = await timeline
      .locator('tbody td:first-child time')
      .evaluateAll((times) => times.map((time) => Date.parse(time.getAttribute('datetime') ?? '')));
    expect(moments).toEqual([...moments].sort((a, b) => b - a));
    await timeline
      .getByRole('link', { name: /^delivery / })
      .first()
      .click();
    await page.getByRole('heading', { name: /^Delivery \d+$/ }).waitFor();
  });

  it('resolves a request that got no answer, with what is known of it and what each choice does', async () => {
    await world.sql(
      `UPDATE people SET state = 'synced', step = NULL;
       INSERT INTO client_providers (client_id, position, provider_id)
         SELECT c.id, 0, p.id FROM people c, people p WHERE c.kind = 'client' AND p.kind = 'provider'`,
    );
    const { state } = world.simulator;
    state.settings = { ...state.settings, webhookDropRate: 1 };
    state.faults.order([readFaultRule({ operation: 'createSession', kind: 'commit-then-cut', count: 1 })]);
    const wish = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], input: { text: { text: 'They spoke.' } } };
    const body = { ...wish, partnerAppointmentId: 'visit-lost' };
    const asked = (await world.service.call('POST', '/v1/sessions', { body, wait: 60 })).json<SessionResponse>();
    expect(asked.state).toBe('Unknown');
    const made = state.sessions.list().find(({ partnerAppointmentId }) => partnerAppointmentId === 'visit-lost');

    const reader = await browser.open(world.service.url, `/sessions/${asked.id}`, await newKey('sessions:read'));
    await reader.getByText('No event has named a session').waitFor();
    await reader.getByText('sessions:write').waitFor();
    expect(await reader.getByRole('button', { name: 'Send it again' }).count()).toBe(0);

    const page = await browser.open(world.service.url, '/sessions?state=Unknown');
    await page.getByRole('link', { name: asked.id }).click();
    await page.getByText('Sends the request once more.').waitFor();
    await page.getByRole('region', { name: 'Timeline' }).getByText('no answer').waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await axeFindings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Link', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Id of the session on the platform').fill('nowhere');
    await dialog.getByRole('button', { name: 'Link' }).click();
    await dialog.getByRole('alert').waitFor();
    expect(await axeFindings(page)).toEqual([]);
    await dialog.getByLabel('Id of the session on the platform').fill(made?.sessionId ?? '');
    await dialog.getByRole('button', { name: 'Link' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('region', { name: 'Timeline' }).getByText('settled').waitFor();
    expect((await world.show(asked.id)).sessionId).toBe(made?.sessionId);
    state.settings = { ...state.settings, webhookDropRate: 0 };
  });

  it('shows no text to a key without notes:read', async () => {
    const page = await browser.open(world.service.url, `/sessions/${id}`, await newKey('sessions:read'));
    await page.getByText('notes:read').waitFor();
    await page.locator('main').getByText('visit-1').first().waitFor();
    const shown = (await page.locator('main').textContent()) ?? '';
    expect(texts(second).filter((text) => shown.includes(text))).toEqual([]);
    expect(await page.getByText('Transcript').count()).toBe(0);
  });

  it('replays one delivery, and exactly as many as it had counted', async () => {
    const page = await browser.open(world.service.url, '/deliveries?state=processed');
    const [delivery] = await world.sql(
      'SELECT id::text, processed_at FROM webhook_deliveries ORDER BY id DESC LIMIT 1',
    );
    await page.getByRole('link', { name: delivery.id, exact: true }).click();
    await page.getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await world.heardAll();
    const [replayed] = await world.sql('SELECT processed_at FROM webhook_deliveries WHERE id = $1', [delivery.id]);
    expect(replayed.processed_at > delivery.processed_at).toBe(true);

    const [{ count }] = await world.sql("SELECT count(*)::int FROM webhook_deliveries WHERE state = 'processed'");
    await page.getByRole('link', { name: 'All deliveries' }).click();
    await page.getByRole('button', { name: 'Replay a selection' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('State').selectOption('processed');
    await dialog.getByRole('button', { name: 'Count' }).click();
    await dialog.getByRole('button', { name: `Replay ${count}` }).click();
    await dialog.getByText(`${count} deliveries are processed again.`).waitFor();
    await world.heardAll();
    const [{ again }] = await world.sql(
      'SELECT count(*)::int AS again FROM webhook_deliveries WHERE processed_at > $1',
      [replayed.processed_at],
    );
    expect(again).toBe(count);
  });

  it('dismisses a delivery that nobody understands', async () => {
    const secret = world.simulator.state.settings.webhookSecret;
    await deliver(world.service, signed('{"eventType":"SESSION_TELEPORTED"}', { secret }));
    await world.heardAll();
    const page = await browser.open(world.service.url, '/deliveries?state=not-understood');
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Dismiss' }).click();
    await page.getByText('No delivery is not-understood.').waitFor();
  });
});
