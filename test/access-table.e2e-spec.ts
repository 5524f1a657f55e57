import { until } from '../harness/until.js';
import { SCOPES, type Scope } from '../src/access/identity/scope.js';
import { query } from './support/databases.js';
import { useSharedService } from './support/shared-service.js';
import { answerTo } from './support/webhook-requests.js';

/** Every operation of the API by what its caller needs; one that is added belongs here, too. */
const TABLE: Record<Scope | 'people:read sessions:read notes:read' | 'any key' | 'nothing', string[]> = {
  'people:read': [
    'GET /v1/providers',
    'GET /v1/providers/{externalId}',
    'GET /v1/clients',
    'GET /v1/clients/{externalId}',
    'GET /v1/people/stuck',
    'GET /v1/people/unknown-to-ehr',
    'POST /v1/people/search',
    'POST /v1/people/trace',
  ],
  'people:write': [
    'PUT /v1/providers/{externalId}',
    'DELETE /v1/providers/{externalId}',
    'POST /v1/providers/{externalId}/resolve',
    'PUT /v1/clients/{externalId}',
    'PUT /v1/clients/{externalId}/providers',
    'DELETE /v1/clients/{externalId}',
    'POST /v1/clients/{externalId}/resolve',
  ],
  imports: [
    'POST /v1/imports',
    'GET /v1/imports',
    'GET /v1/imports/{id}',
    'GET /v1/imports/{id}/rows',
    'GET /v1/imports/{id}/rejected.csv',
    'GET /v1/imports/{id}/events',
    'POST /v1/imports/{id}/apply',
    'POST /v1/imports/{id}/pause',
    'POST /v1/imports/{id}/resume',
    'POST /v1/imports/{id}/cancel',
    'POST /v1/imports/{id}/retry',
  ],
  'sessions:read': [
    'GET /v1/sessions',
    'GET /v1/sessions/{id}',
    'GET /v1/sessions/{id}/timeline',
    'GET /v1/sessions/{id}/request',
    'GET /v1/sessions/refreshes',
    'GET /v1/smart-edit/jobs/{jobId}',
  ],
  'sessions:write': [
    'POST /v1/sessions',
    'PATCH /v1/sessions/{id}',
    'PUT /v1/sessions/{id}/note-templates',
    'POST /v1/sessions/{id}/resolve',
    'POST /v1/sessions/refreshes',
    'POST /v1/recordings',
    'POST /v1/recordings/upload-url',
  ],
  'notes:read': [
    'GET /v1/sessions/{id}/notes',
    'GET /v1/sessions/{id}/notes/{documentId}/revisions',
    'GET /v1/sessions/{id}/transcript',
    'GET /v1/sessions/{id}/insights',
    'GET /v1/sessions/{id}/recording-url',
    'GET /v1/processing-sessions/{processingId}',
    'GET /v1/processing-notices/{deliveryId}',
  ],
  recorder: ['POST /v1/recorder/launches', 'POST /v1/recorder/recoveries'],
  compliance: [
    'POST /v1/compliance/jobs',
    'GET /v1/compliance/jobs',
    'GET /v1/compliance/jobs/{id}',
    'POST /v1/compliance/jobs/{id}/resolve',
    'POST /v1/compliance/upload-url',
  ],
  'events:read': ['GET /v1/events'],
  webhooks: [
    'GET /v1/webhook-deliveries',
    'GET /v1/webhook-deliveries/{id}',
    'POST /v1/webhook-deliveries/{id}/replay',
    'POST /v1/webhook-deliveries/{id}/dismiss',
    'POST /v1/webhook-deliveries/replay',
    'GET /v1/webhook-rejections',
  ],
  operations: ['GET /metrics', 'GET /v1/overview'],
  admin: [
    'POST /v1/api-keys',
    'GET /v1/api-keys',
    'POST /v1/api-keys/{id}/rotate',
    'DELETE /v1/api-keys/{id}',
    'GET /v1/audit',
    'GET /v1/clients/{externalId}/disclosures',
  ],
  'people:read sessions:read notes:read': ['GET /v1/clients/{externalId}/export'],
  'any key': [
    'GET /v1/capabilities',
    'GET /v1/browser-session',
    'POST /v1/browser-session',
    'DELETE /v1/browser-session',
  ],
  nothing: ['GET /health/live', 'GET /health/ready'],
};

/** Requests under way at once. */
const AT_ONCE = 8;

const shared = useSharedService({ env: { ROLES: 'api' } });

interface Operation {
  description?: string;
  security?: unknown[];
  'x-scopes'?: Scope[];
}

async function operations(): Promise<Map<string, Operation>> {
  type Document = { paths: Record<string, Record<string, Operation>> };
  const { body } = await shared.service.call<Document>('GET', '/openapi.json');
  return new Map(
    Object.entries(body.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): [string, Operation] => [
        `${method.toUpperCase()} ${path}`,
        operation,
      ]),
    ),
  );
}

async function makeKey(...scopes: Scope[]): Promise<{ id: string; key: string }> {
  const body = { name: `${scopes.length} scopes`, scopes };
  const made = await shared.service.call<{ id: string; key: string }>('POST', '/v1/api-keys', { body });
  expect(made.status).toBe(201);
  return made.body;
}

/** How an operation is answered to a key as far as access goes. */
async function accessTo(operation: string, key: string | undefined): Promise<'in' | 'stranger' | 'lacks scope'> {
  const [method = '', pattern = ''] = operation.split(' ');
  const ask = async () => {
    const response = await fetch(shared.service.url + pattern.replace(/\{\w+\}/g, 'x'), {
      method,
      headers: { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) },
      ...(method !== 'GET' && { body: '{}' }),
    });
    const type = /"type":"urn:notebridge:problem:([a-z-]+)"/.exec(await response.text())?.[1] ?? '';
    // A slow machine's database had no time to look at the key, or to keep the entry.
    return ['database-unavailable', 'audit-unavailable'].includes(type) ? undefined : { response, type };
  };
  const { response, type } = await until(`${operation} is answered`, ask);
  // Health is told with a 503 where something is late, as on a slow machine.
  if (response.status >= 500 && operation !== 'GET /health/ready')
    expect([operation, type]).toEqual([operation, 'not-configured']);
  if (type === 'forbidden-scope') return 'lacks scope';
  // Whoever tries many wrong keys is locked out.
  return ['unauthenticated', 'too-many-failures'].includes(type) ? 'stranger' : 'in';
}

test('every operation lets in exactly the keys that the table says, and OpenAPI says the same', async () => {
  const described = await operations();
  expect(Object.values(TABLE).flat().sort()).toEqual([...described.keys()].sort());

  const revoked = await makeKey(...SCOPES);
  const revoking = await answerTo(`${shared.service.url}/v1/api-keys/${revoked.id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${(await makeKey('admin')).key}` },
  });
  expect(revoking.status).toBe(204);
  const expired = await makeKey(...SCOPES);
  await query(shared.mirror.database, 'UPDATE api_keys SET expires_at = now() WHERE id = $1', [expired.id]);
  const strangers = [undefined, `nb_${'A'.repeat(43)}`, 'malformed', expired.key, revoked.key];
  const keys = await Promise.all(SCOPES.map(async (scope) => ({ scope, ...(await makeKey(scope)) })));

  const wrong: string[] = [];
  const judge = async ([need, operation]: [string, string]) => {
    for (const [i, key] of strangers.entries()) {
      const access = await accessTo(operation, key);
      if (access !== (need === 'nothing' ? 'in' : 'stranger')) wrong.push(`${operation}: ${access} (stranger ${i})`);
    }
    for (const { scope, key } of keys) {
      const access = await accessTo(operation, key);
      const isIn = need === scope || need === 'any key' || need === 'nothing';
      if (access !== (isIn ? 'in' : 'lacks scope')) wrong.push(`${operation}: ${access} with ${scope}`);
    }
    const scopes = need === 'nothing' ? undefined : need === 'any key' ? [] : need.split(' ');
    expect(described.get(operation)?.['x-scopes']).toEqual(scopes);
    for (const scope of scopes ?? []) expect(described.get(operation)?.description).toContain(`\`${scope}\``);
    if (need === 'nothing') expect(described.get(operation)?.security).toEqual([]);
  };
  const rows = Object.entries(TABLE).flatMap(([need, named]) =>
    named.map((operation): [string, string] => [need, operation]),
  );
  const worker = async () => {
    for (let row = rows.shift(); row; row = rows.shift()) await judge(row);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  expect(wrong).toEqual([]);
});
