import { signWebhook } from '../../src/webhooks/receive/webhook-signature.js';
import { WEBHOOK_SECRET, type World } from '../world.js';

/** Webhooks that are not the platform's. */
export class ForgedWebhooks {
  private sent = 0;
  private readonly accepted: number[] = [];

  constructor(private readonly world: World) {}

  async send(): Promise<void> {
    this.sent += 1;
    const body = JSON.stringify({
      eventType: 'SESSION_CREATED',
      sessionId: `forged-${this.sent}`,
      providerUserId: 'p-1',
    });
    const now = String(Date.now());
    const sign = (secret: string, text: string) => signWebhook(secret, now, Buffer.from(text));
    const signatures = [undefined, '', sign('another secret', body), sign(WEBHOOK_SECRET, `${body} `)];
    const signature = signatures[this.sent % signatures.length];
    const [port] = this.world.receivers;
    const status = await fetch(`http://127.0.0.1:${port}/webhooks/platform`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-timestamp': now,
        ...(signature !== undefined && { 'x-service-signature': signature }),
      },
      body,
    }).then(
      async (answer) => (await answer.arrayBuffer()) && answer.status,
      () => 0, // the process was killed
    );
    if (status >= 200 && status < 300) this.accepted.push(this.sent);
  }

  async check(): Promise<void> {
    const { oracle } = this.world;
    oracle.same('some webhooks were forged', this.sent > 0, true);
    oracle.none('no forged webhook is accepted', this.accepted);
    oracle.same('no forged session is known', await this.world.count("sessions WHERE session_id LIKE 'forged-%'"), 0);
  }
}
