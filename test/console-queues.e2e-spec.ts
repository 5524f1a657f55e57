import { Logger } from '@nestjs/common';
import { Queue } from 'bullmq';
import type { Page } from 'playwright-core';
import { canary, Searcher } from '../harness/canaries.js';
import type { Service } from '../harness/service.js';
import { HANG_MS, until } from '../harness/until.js';
import type { NewApiKeyResponse } from '../src/access/keys/api-keys.dto.js';
import { producerOptions, workerOptions } from '../src/queue/backend/backend.js';
import { BoundedWorker } from '../src/queue/backend/bounded.js';
import { QUEUE_NAMES } from '../src/queue/backend/queue-names.js';
import { ADMIN_KEY } from './support/app.js';
import { queueBackend } from './support/backends.js';
import { axeFindings, describeInBrowser, signIn, useBrowser } from './support/browser.js';
import { type Mirror, useMirrors } from './support/service.js';
import { answerTo } from './support/webhook-requests.js';

interface BoardQueue {
  name: string;
  counts: Record<string, number>;
  readOnlyMode: boolean;
  jobs: { id: string; data: object }[];
}

const PERSON = { email: 'imani.okafor@example.org', firstName: 'Imani', lastName: 'Okafor' };

describe('the board of the queues', () => {
  const backend = queueBackend('PostgreSQL');
  const newMirror = useMirrors();
  let mirror: Mirror;
  let service: Service;
  let operationsKey: string;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    mirror = await newMirror({ backend });
    // Without a worker the jobs stay where they are.
    service = await mirror.start({ ROLES: 'api' });
    const body = { name: 'on-call', scopes: ['operations'] };
    operationsKey = (await service.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body })).body.key;
    await service.call('PUT', '/v1/providers/p-1', { body: PERSON });
    await until('a job waits', async () => ((await queue('user-management')).counts.waiting ?? 0) > 0);
    await failOne();
  });

  /** A job of `compliance` fails as the service's own do. */
  async function failOne() {
    const env = { ...mirror.settings, REDIS_URL: backend.redisUrl, QUEUE_PREFIX: backend.queuePrefix };
    const failing = new Queue('compliance', producerOptions(env));
    const fails = () => Promise.reject(Object.assign(new Error(canary('Person')), { code: '23505' }));
    const worker = new BoundedWorker('compliance', fails, workerOptions(env));
    await failing.waitUntilReady();
    await failing.add('notify', { reason: 'test' });
    await until('a job has failed', async () => (await failing.getFailedCount()) === 1);
    await Promise.all([worker.close(), failing.close()]);
  }

  const ask = (place: string, key: string | undefined = ADMIN_KEY, method = 'GET') =>
    answerTo(service.url + place, { method, headers: { authorization: `Bearer ${key}` } });

  const read = async (query = '') =>
    ((await (await ask(`/queues/api/queues${query}`)).json()) as { queues: BoardQueue[] }).queues;

  const queue = async (name: string, query = '') => {
    const found = (await read(query)).find((each) => each.name === name);
    if (!found) throw new Error(`The board has no queue ${name}.`);
    return found;
  };

  const script = async () => /static\/[\w./-]+\.js/.exec(await (await ask('/queues')).text())?.[0];

  const entriesOf = async (answer: Response) =>
    mirror.sql('SELECT action, outcome FROM audit_entries WHERE request_id = $1', [answer.headers.get('request-id')]);

  it('shows every queue, for reading alone', async () => {
    const queues = await read();
    expect(queues.map(({ name }) => name).sort()).toEqual([...QUEUE_NAMES].sort());
    expect(queues.every(({ readOnlyMode }) => readOnlyMode)).toBe(true);
    for (const change of ['queues/pause', 'queues/user-management/retry/failed', 'queues/user-management/empty']) {
      expect([change, (await ask(`/queues/api/${change}`, ADMIN_KEY, 'PUT')).status]).toEqual([change, 405]);
    }
  });

  it('is for the scope admin, each of its addresses', async () => {
    for (const place of ['/queues', '/queues/queue/imports', '/queues/api/queues', `/queues/${await script()}`]) {
      expect([place, (await ask(place)).status]).toEqual([place, 200]);
      expect([place, (await fetch(service.url + place)).status]).toEqual([place, 401]);
      expect([place, (await ask(place, operationsKey)).status]).toEqual([place, 403]);
    }
  });

  it('leads a browser without a session to the page that signs it in', async () => {
    const opened = await fetch(`${service.url}/queues`, { headers: { accept: 'text/html' }, redirect: 'manual' });
    expect([opened.status, opened.headers.get('location')]).toEqual([303, '/console/queues']);
  });

  it('leaves an entry for whoever opens it or is refused, and none for what it reads meanwhile', async () => {
    expect(await entriesOf(await ask('/queues'))).toEqual([{ action: 'GET /queues', outcome: 'ok' }]);
    expect(await entriesOf(await ask('/queues/api/queues'))).toEqual([]);
    expect(await entriesOf(await ask('/queues/api/queues', operationsKey))).toEqual([
      { action: 'GET /queues/api/*', outcome: 'forbidden-scope' },
    ]);
  });

  it('shows of a job why it was made, and nothing of whom it concerns', async () => {
    const [job] = (await queue('user-management', '?activeQueue=user-management&status=waiting')).jobs;
    expect(job?.data).toEqual({ reason: expect.any(String) });
    const details = await (await ask(`/queues/api/queues/user-management/${job?.id}`)).text();
    for (const word of Object.values(PERSON)) expect(details).not.toContain(word);
  });

  it('shows of a job that failed a code, and nothing of its error', async () => {
    const [job] = (await queue('compliance', '?activeQueue=compliance&status=failed')).jobs;
    const details = await (await ask(`/queues/api/queues/compliance/${job?.id}`)).text();
    expect(details).toContain('"failedReason":"database-23505","stacktrace":[]');
    expect(new Searcher().finds(JSON.stringify(job) + details)).toEqual([]);
  });

  it('refuses what is not there, and answers a hostile query within bounds', async () => {
    for (const place of ['queues/user-management/meta', 'queues/user-management/events', 'queues/none/1', 'none', ''])
      expect([place, (await ask(`/queues/api/${place}`)).status]).toEqual([place, 404]);
    for (const query of ['?activeQueue=%25', '?page=1e300', '?jobsPerPage=-1', '?status=a&status=b', '?page[]=1'])
      expect([query, (await ask(`/queues/api/queues${query}`)).status]).toEqual([query, 200]);
    expect((await ask('/queues/static/..%2f..%2fpackage.json')).status).toBe(404);
  });

  it('has a page that loads nothing from another host and allows nothing inline', async () => {
    const answer = await ask('/queues');
    expect(answer.headers.get('content-security-policy')).not.toMatch(/unsafe|sha256/);
    expect(await answer.text()).not.toMatch(/https?:|<style|style=/);
  });

  describeInBrowser('in a browser', () => {
    const browser = useBrowser();

    it('is found from the console, and shows the queues with their counts', async () => {
      const page = await browser.open(service.url, '/queues');
      const opening = page.waitForEvent('popup');
      await page.getByRole('link', { name: 'Open the board of the queues' }).click();
      const board = await opening;
      board.setDefaultTimeout(HANG_MS);
      const faults: string[] = [];
      board.on('console', (message) => {
        if (/Content Security Policy|Refused to/.test(message.text())) faults.push(message.text());
      });
      board.on('request', (request) => {
        if (!request.url().startsWith(service.url)) faults.push(request.url());
      });
      // The new window is still on its way to its first document: a reload before that ends is an error of the protocol.
      await board.getByText(QUEUE_NAMES[0], { exact: true }).first().waitFor();
      await board.reload();
      for (const name of QUEUE_NAMES) await board.getByText(name, { exact: true }).first().waitFor();
      const waiting = () => queue('user-management', '?activeQueue=user-management&status=waiting');
      await board.goto('/queues/queue/user-management?status=waiting');
      await until('it shows how many wait', async () => {
        const { counts } = await waiting();
        const shown = board.getByText(new RegExp(`^Waiting\\s*${counts.waiting}$`, 'i'));
        return shown.first().isVisible();
      });
      const { jobs } = await waiting();
      await board.goto(`/queues/queue/user-management/${jobs[0]?.id}`);
      await board.getByText('notify', { exact: true }).first().waitFor();
      await board.getByRole('tabpanel').filter({ hasText: 'reason' }).waitFor();
      expect(faults).toEqual([]);
    });

    it('is refused to a key without the scope, which the console says', async () => {
      const page = await browser.open(service.url, '/queues', operationsKey);
      await page.getByText('This key lacks the scope admin').waitFor();
      expect((await page.goto('/queues'))?.status()).toBe(403);
      expect((await page.goto('/queues/api/queues'))?.status()).toBe(403);
    });

    it('has no serious fault of accessibility, on its pages and in its dialogs', async () => {
      const page = await browser.open(service.url, '/queues');
      const found: Record<string, string[]> = {};
      const [failed] = (await queue('compliance', '?activeQueue=compliance&status=failed')).jobs;
      for (const [place, shown] of [
        ['', 'Failed'],
        ['/queue/user-management?status=waiting', 'notify'],
        [`/queue/compliance/${failed?.id}`, 'database-23505'],
        ['/queue/compliance', 'database-23505'],
      ] as const) {
        await page.goto(`/queues${place}`);
        await page.getByText(shown).first().waitFor();
        found[place] = await faults(page);
      }
      for (const [name, shown] of [
        ['Queue info', 'Running'],
        ['settings', 'Language'],
      ] as const) {
        await page.getByRole('button', { name }).click();
        await page.getByRole('dialog').getByText(shown).waitFor();
        found[name] = await faults(page);
        await page.getByRole('button', { name: 'Close' }).click();
      }
      expect(Object.entries(found).filter(([, faulty]) => faulty.length > 0)).toEqual([]);
    });

    it.each([
      ['signed out', (page: Page) => page.getByRole('button', { name: 'Sign out' }).click()],
      ['refused, for its key was revoked', (_: Page, id: string) => ask(`/v1/api-keys/${id}`, ADMIN_KEY, 'DELETE')],
    ])('leads to the sign-in when whoever has it open is %s', async (_, end) => {
      const body = { name: 'on-call', scopes: ['admin'] };
      const { key, id } = (await service.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body })).body;
      const page = await browser.open(service.url, '/queues', key);
      const board = await page.context().newPage();
      board.setDefaultTimeout(HANG_MS);
      await board.goto('/queues');
      await board.getByText(QUEUE_NAMES[0]).first().waitFor();
      await end(page, id);
      await board.waitForURL('**/console/queues');
      await signIn(board, ADMIN_KEY);
      await board.getByRole('link', { name: 'Open the board of the queues' }).waitFor();
    });
  });
});

/** What axe finds on the board in each look, once no colour is on its way to another. */
async function faults(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const [colorScheme, width] of [
    ['dark', 390],
    ['light', 390],
    ['dark', 1280],
    ['light', 1280],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    const isDark = `document.body.classList.contains('dark-mode') === ${colorScheme === 'dark'}`;
    await until('it looks so', () => page.evaluate(`${isDark} && document.getAnimations().length === 0`));
    found.push(...(await axeFindings(page)).map((fault) => `${colorScheme}, ${width} pixels: ${fault}`));
  }
  return found;
}

describe('while the store of the queues is away', () => {
  const newMirror = useMirrors();

  it('says so instead of waiting for it', async () => {
    // Nobody listens on the port discard.
    const service = await (await newMirror()).start({ ROLES: 'api', REDIS_URL: 'redis://127.0.0.1:9' });
    const { status, body } = await service.call<{ type: string }>('GET', '/queues/api/queues');
    expect([status, body.type]).toEqual([503, 'urn:notebridge:problem:queues-unavailable']);
  });
});
