import { setTimeout as delay } from 'node:timers/promises';
import type { World } from '../world.js';

/** Milliseconds between two people, so that an import gets most of the call budget. */
const EVERY_MS = 1_500;

/** Providers that the EHR sends one by one, waiting for each answer, until it is stopped. */
export class PeopleWork {
  private readonly sent: string[] = [];
  private stopping = false;
  private readonly sending: Promise<void>;

  constructor(
    private readonly world: World,
    private readonly everyMs = EVERY_MS,
  ) {
    this.sending = this.run();
  }

  /** Stops sending, waits until everyone is synced, and checks the invariants. */
  async ended(): Promise<void> {
    this.stopping = true;
    await this.sending;
    const { world, sent } = this;
    await world.reach('everyone is synced', async () => {
      return (await world.count("people WHERE external_id LIKE 'live-%' AND state <> 'synced'")) === 0;
    });
    const users = world.simulator.state.users.list();
    world.oracle.same('some people were sent', sent.length > 0, true);
    world.oracle.none(
      'the platform has each person with an answered PUT exactly once',
      sent.filter((id) => users.filter(({ partnerUserId }) => partnerUserId === id).length !== 1),
    );
  }

  private async run(): Promise<void> {
    const { ehr, random } = this.world;
    while (!this.stopping) {
      const id = `live-${this.sent.length}`;
      const body = { email: `${id}@example.org`, firstName: 'Lia', lastName: 'Ruiz' };
      await ehr.call('PUT', `/v1/providers/${id}`, { body, wait: random.below(5) });
      this.sent.push(id);
      await delay(this.everyMs);
    }
  }
}
