// One day of an EHR: a provider, a client, a session, and the push that its notes are ready.
// NOTEBRIDGE_URL=… NOTEBRIDGE_KEY=… node ehr.mjs
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createClient, verifyWebhook } from 'notebridge-client';

const client = createClient({ url: process.env.NOTEBRIDGE_URL, key: process.env.NOTEBRIDGE_KEY });
const TEMPLATE = '6f1c2f0e-7d6f-4a0e-9f0a-3f3a5f1f9a01';
const appointment = `appointment-${Date.now()}`;

// Receives pushes. The secret comes with the subscription; until then a push is answered 503 and comes again.
let secret;
const receiver = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  if (!secret) return response.writeHead(503).end();
  try {
    receiver.emit('push', await verifyWebhook(request.headers, Buffer.concat(chunks), secret));
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(400).end(error.message);
  }
});
await once(receiver.listen(0, '127.0.0.1'), 'listening');
const types = ['session.notes-ready', 'session.failed'];
const { data: subscription } = await client.POST('/v1/subscriptions', {
  body: { url: `http://127.0.0.1:${receiver.address().port}/notebridge`, types },
});
secret = subscription.secret;

try {
  const provider = { email: 'ines.baptiste@example.org', firstName: 'Ines', lastName: 'Baptiste' };
  await client.PUT('/v1/providers/{externalId}', { params: { path: { externalId: 'P-901' } }, body: provider });
  await client.waitFor('provider', 'P-901');
  const patient = { firstName: 'Tomas', lastName: 'Lind', providers: ['P-901'] };
  await client.PUT('/v1/clients/{externalId}', { params: { path: { externalId: 'C-9001' } }, body: patient });
  await client.waitFor('client', 'C-9001');

  const pushed = new Promise((resolve) => {
    receiver.on('push', (event) => event.data.partnerAppointmentId === appointment && resolve(event));
  });
  const input = { text: { text: 'Slept better; keeps the plan for the week.' } };
  const names = { provider: 'P-901', client: 'C-9001', partnerAppointmentId: appointment };
  const { data: session } = await client.POST('/v1/sessions', {
    body: { ...names, noteTemplateIds: [TEMPLATE], input },
  });

  const { type } = await pushed;
  if (type === 'session.failed') throw new Error(`The session failed: see /v1/sessions/${session.id}.`);
  const { data: notes } = await client.GET('/v1/sessions/{id}/notes', { params: { path: { id: session.id } } });
  for (const { notes: lines } of notes.documents) for (const line of lines) console.log(line.categoryName, line.text);
} finally {
  await client.DELETE('/v1/subscriptions/{id}', { params: { path: { id: subscription.id } } });
  receiver.close();
}
