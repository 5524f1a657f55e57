import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { WEBHOOK_SIGNATURE_HEADER, WEBHOOK_TIMESTAMP_HEADER } from '../../src/platform/contract/wire-types.js';
import { signWebhook } from '../../src/webhooks/receive/webhook-signature.js';

/** The result of one attempt: an HTTP status, or why there was none. */
interface WebhookAnswer {
  status: number | null;
  error: string | null;
}

/** Sends one signed POST. The milliseconds end at the answer's status line. Never throws. */
export function postWebhook(
  target: { url: string; secret: string; timeoutMs: number },
  timestamp: string,
  body: Buffer,
  signal: AbortSignal,
): Promise<WebhookAnswer> {
  return new Promise((resolve) => {
    const settle = (status: number | null, error: string | null) => {
      clearTimeout(deadline);
      resolve({ status, error });
    };
    const post = target.url.startsWith('https:') ? requestHttps : requestHttp;
    const request = post(target.url, {
      method: 'POST',
      signal,
      headers: {
        'content-type': 'application/json',
        'content-length': body.length,
        'user-agent': 'Service Webhook',
        [WEBHOOK_SIGNATURE_HEADER]: signWebhook(target.secret, timestamp, body),
        [WEBHOOK_TIMESTAMP_HEADER]: timestamp,
      },
    });
    const deadline = setTimeout(() => {
      settle(null, 'timeout');
      request.destroy();
    }, target.timeoutMs);
    request.on('response', (response) => {
      response.resume();
      settle(response.statusCode ?? null, null);
    });
    request.on('error', (error: NodeJS.ErrnoException) => settle(null, error.code ?? error.message));
    request.end(body);
  });
}
