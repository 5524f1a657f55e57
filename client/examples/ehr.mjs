// One day of an EHR: a provider, a client, a session, and the push that its notes are ready.
// NOTEBRIDGE_URL=… NOTEBRIDGE_KEY=… node ehr.mjs
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { createClient, verifyWebhook } from 'notebridge-client';

const client = createClient({ url: process.env.NOTEBRIDGE_URL, key: process.env.NOTEBRIDGE_KEY });

// Receives pushes. One that arrives before its secret is known is answered 400, and comes again.
const secrets = [];
const pushes = new EventEmitter();
const endpoint = createServer(async (request, response) => {
  try {
    const { type, data } = await verifyWebhook(request.headers, await buffer(request), secrets);
    pushes.emit(`appointment ${data.partnerAppointmentId}`, type);
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(400).end(error.message);
  }
});
await once(endpoint.listen(0, '127.0.0.1'), 'listening');
const url = `http://127.0.0.1:${endpoint.address().port}/notebridge`;
const types = ['session.notes-ready', 'session.failed'];
const { data: subscription } = await client.POST('/v1/subscriptions', { body: { url, types } });
secrets.push(subscription.secret);

const provider = { email: 'ines.baptiste@example.org', firstName: 'Ines', lastName: 'Baptiste' };
await client.PUT('/v1/providers/{externalId}', { params: { path: { externalId: 'P-901' } }, body: provider });
await client.waitFor('provider', 'P-901');
const patient = { firstName: 'Tomas', lastName: 'Lind', providers: ['P-901'] };
await client.PUT('/v1/clients/{externalId}', { params: { path: { externalId: 'C-9001' } }, body: patient });
await client.waitFor('client', 'C-9001');

const partnerAppointmentId = `visit-${Date.now()}`;
const pushed = once(pushes, `appointment ${partnerAppointmentId}`, { signal: AbortSignal.timeout(120_000) });
const names = { provider: 'P-901', client: 'C-9001', partnerAppointmentId };
const noteTemplateIds = ['6f1c2f0e-7d6f-4a0e-9f0a-3f3a5f1f9a01'];
const input = { text: { text: 'Slept better; keeps the plan for the week.' } };
const { data: session } = await client.POST('/v1/sessions', { body: { ...names, noteTemplateIds, input } });
const [type] = await pushed;
if (type === 'session.failed') throw new Error(`The session failed: see /v1/sessions/${session.id}.`);
const { data: notes } = await client.GET('/v1/sessions/{id}/notes', { params: { path: { id: session.id } } });
for (const { notes: lines } of notes.documents) for (const line of lines) console.log(line.categoryName, line.text);

// An EHR keeps its subscription; this example leaves nothing behind.
await client.DELETE('/v1/subscriptions/{id}', { params: { path: { id: subscription.id } } });
endpoint.close();
