import { PushReceiver, type Respond, SWITCH_PROTOCOL, status } from '../../harness/push-receiver.js';
import { SELF_SIGNED } from '../../harness/self-signed.js';
import type { NewSubscriptionResponse, SubscriptionResponse } from '../../src/subscriptions/subscriptions.dto.js';
import type { World } from '../world.js';

/** Events per INSERT. */
const BATCH = 100;

/** Every way to accept or fail an event, for one attempt each. */
const MISBEHAVIOURS: Record<string, Respond> = {
  slow: (answer) => void setTimeout(() => answer.writeHead(204).end(), 1_500),
  'no answer': () => undefined,
  'cut off before an answer': (answer) => void answer.destroy(),
  'cut off in the answer': (answer) => {
    answer.writeHead(200, { 'content-length': '1000' }).write('{');
    setTimeout(() => answer.destroy(), 20);
  },
  'a body after a 204': (answer) => {
    const { socket } = answer;
    answer.writeHead(204).end();
    socket?.write('<html>');
  },
  'another protocol': status(101, SWITCH_PROTOCOL),
  'an error': status(500),
  'too many requests': status(429, { 'retry-after': '6' }),
  gone: status(410),
  'a redirect': status(308, { location: 'http://127.0.0.1:1/' }),
  'wrong content': (answer) => void answer.writeHead(200, { 'content-type': 'text/html' }).end('<html>'.repeat(50_000)),
};

/** A subscription with a misbehaving endpoint, and the events that it received. */
export class PushWork {
  private receiver!: PushReceiver;
  private untrusted!: PushReceiver;
  private id = '';
  private inFlight = 0;
  private mostInFlight = 0;
  /** The number of the last event that the endpoint accepted; the service knows of it or sends it again. */
  private taken = 0;
  private readonly wrong: string[] = [];
  private readonly planned: Respond[] = [];
  private isSound = true;

  /** @param onTaken is given the body of each event that the endpoint takes */
  constructor(
    private readonly world: World,
    private readonly onTaken: (body: string) => void = () => undefined,
  ) {}

  async begin(): Promise<void> {
    this.receiver = await PushReceiver.start();
    const { attempts, taken } = this.receiver;
    this.receiver.respond = (answer, received) => {
      // Its memory would grow during the whole run.
      attempts.length = 0;
      taken.length = 0;
      this.inFlight += 1;
      this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
      answer.once('close', () => {
        this.inFlight -= 1;
      });
      const number = Number(String(received.headers['webhook-id']).split('-')[1]);
      if (number !== this.taken && number !== this.taken + 1) this.wrong.push(`${number} after ${this.taken}`);
      // A good answer follows each fault, because the backoff grows with each failure.
      const respond = this.isSound ? this.planned.shift() : undefined;
      this.isSound = respond === undefined;
      // The service may count the event as accepted once it has the status.
      const write = answer.writeHead.bind(answer);
      answer.writeHead = ((code: number, ...more: never[]) => {
        if (code >= 200 && code < 300) {
          this.taken = Math.max(this.taken, number);
          this.onTaken(received.body);
        }
        return write(code, ...more);
      }) as typeof answer.writeHead;
      (respond ?? status(204))(answer, received);
    };
    this.untrusted = await PushReceiver.start(SELF_SIGNED);
    const body = { url: this.receiver.url, after: '0' };
    const made = await this.world.ehr.call<NewSubscriptionResponse>('POST', '/v1/subscriptions', { body });
    this.id = made?.body.id ?? '';
  }

  /** Appends events to the feed. */
  async append(events: number): Promise<void> {
    for (let left = events; left > 0; left -= BATCH)
      await this.world.rows(
        `INSERT INTO feed_events (type, subject, data)
         SELECT 'person.synced', 'clients/c-' || n, '{}' FROM generate_series(1, $1::int) AS n`,
        [Math.min(left, BATCH)],
      );
  }

  /** Makes the endpoint misbehave in every way, one after the other; the last fault is its certificate. */
  async misbehave(): Promise<void> {
    for (const [what, respond] of Object.entries(MISBEHAVIOURS)) {
      this.planned.push(respond);
      await this.append(2);
      await this.world.reach(`the endpoint misbehaves: ${what}`, () => this.planned.length === 0);
      this.world.counts.faults += 1;
      if (what === 'gone') await this.resume(respond);
    }
    await this.change({ url: this.untrusted.url });
    await this.append(1);
    await this.world.reach(
      'the certificate of the endpoint is refused',
      async () => (await this.read())?.lastAnswer?.fault === 'tls',
    );
    await this.change({ url: this.receiver.url });
    this.world.counts.faults += 1;
  }

  /** Waits for the last event, and checks the invariants. */
  async ended(): Promise<void> {
    const { oracle } = this.world;
    await this.world.reach('every event is delivered', async () => {
      const subscription = await this.read();
      return subscription?.state === 'active' && subscription.behind === 0;
    });
    oracle.same('every event was accepted', this.taken, await this.world.count('feed_events'));
    oracle.none('the endpoint gets the events in order, and only the last one again', this.wrong);
    oracle.atMost('attempts in flight at a time', this.mostInFlight, 1);
    oracle.same('messages to an endpoint with an untrusted certificate', this.untrusted.attempts.length, 0);
    await this.untrusted.close();
    await this.receiver.close();
  }

  /** Resumes once the service has stored the 410. A process that is killed before sends the event again. */
  private async resume(gone: Respond): Promise<void> {
    await this.world.reach('the subscription is paused', async () => {
      const subscription = await this.read();
      if (subscription?.state === 'paused') return true;
      if (subscription?.behind === 0) {
        this.planned.push(gone);
        await this.append(1);
      }
      return false;
    });
    await this.change({ paused: false });
  }

  private change(body: object): Promise<unknown> {
    return this.world.ehr.call('PATCH', `/v1/subscriptions/${this.id}`, { body });
  }

  private async read(): Promise<SubscriptionResponse | undefined> {
    return (await this.world.ehr.call<SubscriptionResponse>('GET', `/v1/subscriptions/${this.id}`))?.body;
  }
}
