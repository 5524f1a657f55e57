import { CLINICAL_WORD, PERSON_WORD } from '../fuzz/fit-values.js';
import { fuzz, nameOf, UNDER_WAY } from '../fuzz/fuzz.js';
import type { OpenApi } from '../fuzz/openapi.js';
import { bringPeople, makeKeys, slugsOfCode } from '../fuzz/prepare.js';
import { RequestMaker } from '../fuzz/request-maker.js';
import { Sender } from '../fuzz/send.js';
import type { Scenario } from '../scenario.js';
import { ADMIN_KEY, WEBHOOK_SECRET, type World } from '../world.js';

const REQUESTS = 20_000;

/** Sent even in the shortest run, so that each operation is asked some 20 times. */
const MIN_REQUESTS = 2_000;

/** From this number of requests on, each operation must succeed. */
const ENOUGH = 10_000;

/** Additional requests for an operation that has not succeeded by then: it may need two ids that belong together. */
const MORE = 500;

/** Operations that succeed only in a rare state: after a lost answer, or while an import runs or waits to be applied. */
const BY_CHANCE = [
  'POST /v1/sessions/{id}/resolve',
  ...['pause', 'resume', 'apply', 'mapping'].map((action) => `POST /v1/imports/{id}/${action}`),
  'PATCH /v1/imports/{id}/rows',
];

/** Requests as the service's own description asks for them, most of them spoilt in some way. */
export const hostileRequests: Scenario = {
  name: 'requests',
  says: 'requests over every operation of openapi.json that are made from its schemas and then spoilt',
  minutes: 2,
  wanted: {
    platform: { stepMs: 0 },
    env: {
      LOG_LEVEL: 'trace',
      PLATFORM_PARTNER_DOMAIN: 'https://recorder.example',
      REDIRECT_ALLOWED_ORIGINS: 'https://ehr.example',
      PLATFORM_TIMEOUT_SECONDS: '60',
    },
  },
  async run(world) {
    const service = await world.startOne({ PORT: '0' });
    const { state } = world.simulator;
    state.settings = { ...state.settings, webhookUrl: `${service.url}/webhooks/platform` };
    await bringPeople(service, state);
    const { keys, ids } = await makeKeys(service, ADMIN_KEY);
    const { body: document } = await service.call<OpenApi>('GET', '/openapi.json');
    await hasNotes(world);

    const { oracle, setting } = world;
    const maker = new RequestMaker(document, setting.seed, keys, WEBHOOK_SECRET, ids);
    const sender = new Sender(service.url);
    const count = world.sized(REQUESTS, MIN_REQUESTS);
    const more = count >= ENOUGH ? MORE : 0;
    const tally = await fuzz(maker, sender, { count, more }, slugsOfCode());
    sender.close();
    setting.log(`${count} requests of seed ${setting.seed}: ${JSON.stringify(tally.statuses)}, busy ${tally.busy}`);

    oracle.none('no answer breaks a law', tally.broken);
    oracle.atMost('answers that came while one was waited for that does nothing', tally.mostOvertaken, 4 * UNDER_WAY);
    if (count >= ENOUGH) {
      const names = maker.operations.map(nameOf);
      oracle.none(
        'every operation succeeds',
        names.filter((name) => !BY_CHANCE.includes(name) && !tally.successes.has(name)),
      );
    }
    await world.reach('it is ready', async () => (await service.call('GET', '/health/ready')).status === 200);
    const output = service.output();
    for (const line of output
      .split('\n')
      .filter((text) => text.includes('"level":"error"'))
      .slice(0, 5))
      setting.log(line);
    const unwanted = ['a request failed unexpectedly', PERSON_WORD, CLINICAL_WORD, ...keys.values(), WEBHOOK_SECRET];
    oracle.none(
      'the log holds no fault and nothing private',
      unwanted.filter((text) => output.includes(text)).map((text) => unwanted.indexOf(text)),
    );
    oracle.same('who is asked to stop ends with', await service.kill('SIGTERM'), 0);
  },
};

const hasNotes = (world: World) =>
  world.reach('a session has its notes', async () => (await world.count('document_revisions')) > 0);
