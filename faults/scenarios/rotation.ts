import { rotateOn } from '../../src/cli/data/rotate-keys.js';
import { withPrisma } from '../../src/database/with-prisma.js';
import { parseKeys } from '../../src/vault/keys.js';
import type { Scenario } from '../scenario.js';
import { DeliveryWork } from '../workload/delivery-work.js';
import { EverydayWork } from '../workload/everyday-work.js';
import { DATA_KEY, WEBHOOK_SECRET, type World } from '../world.js';

const ROUNDS = 3;
/** Webhooks per second in the whole scenario; a small share sends fewer. */
const PER_SECOND = 30;

interface ApiKey {
  readonly id: string;
  readonly key: string;
}

/** Webhook secrets, data keys and API keys are rotated during everyday work. */
export const rotation: Scenario = {
  name: 'rotation',
  says: 'webhook secrets, data keys and API keys rotated by rolling restarts, while processes are killed',
  minutes: 4,
  wanted: { platform: { stepMs: 300 }, without: ['getProcessingSession'] },
  async run(world) {
    const { processes } = world;
    const rounds = world.sized(ROUNDS);
    await processes.start('api,worker', 'api,worker');
    let key = await newKey(world);
    const work = new EverydayWork(world, 100 * rounds, 60 * rounds);
    await work.begin(() => key.key);
    const deliveries = new DeliveryWork(world, world.sized(PER_SECOND, 10));
    const keys = [DATA_KEY];
    await work.under(
      Array.from({ length: rounds }, (_, round) => async () => {
        key = await rotateApiKey(world, key);
        await rotateDataKey(world, keys, round);
        await rotateSecret(world, deliveries, round);
        await processes.killOne();
      }),
    );
    await deliveries.ended();
    await work.ended();
  },
};

async function newKey({ ehr }: World): Promise<ApiKey> {
  const scopes = ['people:read', 'people:write', 'sessions:read', 'sessions:write'];
  const answer = await ehr.call<ApiKey>('POST', '/v1/api-keys', { body: { name: 'ehr', scopes } });
  if (answer?.status !== 201) throw new Error(`POST /v1/api-keys returned ${answer?.status}`);
  return answer.body;
}

/** The new key is used before the old one is revoked; requests that carry the old one have been answered by then. */
async function rotateApiKey(world: World, old: ApiKey): Promise<ApiKey> {
  const key = await newKey(world);
  void world.ehr.call('DELETE', `/v1/api-keys/${old.id}`);
  return key;
}

/** Every process accepts the new key before one of them uses it. At the end, no value of the old key is left. */
async function rotateDataKey(world: World, keys: string[], round: number): Promise<void> {
  const fresh = `k${round + 2}:${Buffer.alloc(32, 100 + round).toString('base64')}`;
  const roll = (list: string) => world.processes.roll({ DATA_KEYS: list });
  await roll([...keys, fresh].join(','));
  keys.unshift(fresh);
  await roll(keys.join(','));
  const other = parseKeys([DATA_KEY]);
  const all = { DATA_KEYS: parseKeys(keys), FINGERPRINT_KEYS: other, AUDIT_KEYS: other };
  await world.reach('no data of an old key is left', async () => {
    const { left, unreadable } = await world.onConnection((client) =>
      withPrisma(world.postgres.url, (prisma) => rotateOn(client, prisma, 'data', all)),
    );
    if (unreadable.length > 0) throw new Error('the rotation found unreadable rows');
    return left === 0;
  });
}

/** The platform signs with the new secret once all processes accept both. */
async function rotateSecret(world: World, deliveries: DeliveryWork, round: number): Promise<void> {
  const [old, fresh] = [deliveries.secret, `${WEBHOOK_SECRET}-${round + 1}`];
  await world.processes.roll({ PLATFORM_WEBHOOK_SECRET: `${old},${fresh}` });
  deliveries.secret = fresh;
  const { state } = world.simulator;
  state.settings = { ...state.settings, webhookSecret: fresh };
}
