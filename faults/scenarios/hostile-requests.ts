import { CLINICAL_WORD, PERSON_WORD } from '../fuzz/fit-values.js';
import { CONCURRENCY, fuzz, nameOf } from '../fuzz/fuzz.js';
import type { OpenApi } from '../fuzz/openapi.js';
import { createPeople, makeKeys, slugsOfCode } from '../fuzz/prepare.js';
import { RequestMaker } from '../fuzz/request-maker.js';
import { Sender } from '../fuzz/send.js';
import type { Scenario } from '../scenario.js';
import { ADMIN_KEY, WEBHOOK_SECRET, type World } from '../world.js';

const REQUESTS = 20_000;

/** Minimum of requests, so that even the shortest run sends about 20 to each operation. */
const MIN_REQUESTS = 2_000;

/** From this number of requests on, each operation must succeed. */
const ENOUGH = 10_000;

/** Additional requests for an operation that has not succeeded by then: it may need two ids that belong together. */
const MORE = 500;

/** Operations that succeed only in a rare state: after a lost answer, or while an import runs or can be applied. */
const BY_CHANCE = [
  'POST /v1/sessions/{id}/resolve',
  ...['pause', 'resume', 'apply', 'mapping'].map((action) => `POST /v1/imports/{id}/${action}`),
  'PATCH /v1/imports/{id}/rows',
];

/** Requests made from the service's OpenAPI description, most of them with odd parts. */
export const hostileRequests: Scenario = {
  name: 'requests',
  says: 'odd requests to every operation of openapi.json, made from its schemas',
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
    await createPeople(service, state);
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

    oracle.none('no answer violates an invariant', tally.broken);
    oracle.atMost('answers to other requests before that of a health probe', tally.maxOvertaken, 4 * CONCURRENCY);
    if (count >= ENOUGH) {
      const names = maker.operations.map(nameOf);
      oracle.none(
        'every operation succeeds',
        names.filter((name) => !BY_CHANCE.includes(name) && !tally.successes.has(name)),
      );
    }
    await world.reach(
      'the process is ready at the end',
      async () => (await service.call('GET', '/health/ready')).status === 200,
    );
    const output = service.output();
    for (const line of output
      .split('\n')
      .filter((text) => text.includes('"level":"error"'))
      .slice(0, 5))
      setting.log(line);
    const unwanted = ['a request failed unexpectedly', PERSON_WORD, CLINICAL_WORD, ...keys.values(), WEBHOOK_SECRET];
    oracle.none(
      'the log contains no fault and no private word',
      unwanted.filter((text) => output.includes(text)).map((text) => unwanted.indexOf(text)),
    );
    oracle.same('exit code of a process that is asked to stop', await service.kill('SIGTERM'), 0);
  },
};

const hasNotes = (world: World) =>
  world.reach('a session has its notes', async () => (await world.count('document_revisions')) > 0);
