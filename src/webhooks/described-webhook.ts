import type { OpenAPIObject } from '@nestjs/swagger';
import { WEBHOOK_SIGNATURE_HEADER, WEBHOOK_TIMESTAMP_HEADER } from '../platform/contract/wire-types.js';

export const WEBHOOK_PATH = '/webhooks/platform';

const HEADERS = {
  [WEBHOOK_TIMESTAMP_HEADER]: 'Milliseconds since the Unix epoch',
  [WEBHOOK_SIGNATURE_HEADER]: 'HMAC-SHA256 of `v0:`, the timestamp, `:` and the body, in lower-case hex',
};
const parameter = { in: 'header' as const, required: true, schema: { type: 'string' } };

/** The receiver for OpenAPI, because Nest does not know its route. */
export const DESCRIBED_WEBHOOK: OpenAPIObject['paths'][string]['post'] = {
  operationId: 'Webhooks.receive',
  tags: ['webhooks'],
  summary: 'Receive a webhook of the platform',
  description: 'Needs no API key, because the signature proves that the platform sent it.',
  security: [],
  parameters: Object.entries(HEADERS).map(([name, description]) => ({ ...parameter, name, description })),
  requestBody: { required: true, content: { 'application/json': { schema: { type: 'object' } } } },
  responses: { 204: { description: 'The delivery is stored' } },
};
