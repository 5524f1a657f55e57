import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isIsoDate, objectOf, optionalText, requiredText } from '../body-fields.js';
import { invalid, Refusal } from '../refusal.js';
import { templateOf } from '../sessions/read-create.js';
import { createSession } from '../sessions/session-routes.js';
import type { SimulatorState } from '../state.js';
import { readLaunch } from './launch.js';
import { faultPage } from './page-frame.js';
import { recorderPage, unuploadedPage } from './recorder-page.js';
import { RECORDER_SCRIPT, UNUPLOADED_SCRIPT } from './recorder-script.js';

const COOKIE = 'recorder';

/** The white-labeled web app that the provider's browser opens (spec, Audio recorder web routes). */
export async function recorderRoutes(app: FastifyInstance, state: SimulatorState): Promise<void> {
  app.addHook('onSend', async (_request, reply) => {
    reply.headers({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'content-security-policy': [
        "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        `connect-src 'self' ${state.publicUrl}`,
      ].join('; '),
    });
  });

  app.get<{ Querystring: Record<string, unknown> }>('/recorder', async ({ query }, reply) => {
    const launch = readLaunch(state, query);
    if ('faults' in launch) return html(reply.code(400), faultPage(launch.faults));
    const token = String(query.sessionToken);
    openBrowserSession(state, reply, token);
    return html(reply, recorderPage(launch, token));
  });

  app.get<{ Querystring: { sessionToken?: unknown } }>('/unuploaded-sessions', async ({ query }, reply) => {
    const token = typeof query.sessionToken === 'string' ? query.sessionToken : '';
    const providerUserId = state.recorderAccess.ownerOf(token);
    if (!providerUserId) {
      const fault = 'sessionToken is missing, used or expired. Get a new one with initiate-auth.';
      return html(reply.code(400), faultPage([fault]));
    }
    openBrowserSession(state, reply, token);
    return html(reply, unuploadedPage(providerUserId));
  });

  app.get('/recorder/recorder.js', async (_request, reply) => script(reply, RECORDER_SCRIPT));
  app.get('/recorder/unuploaded.js', async (_request, reply) => script(reply, UNUPLOADED_SCRIPT));

  app.post('/recorder/uploads', async (request, reply) => {
    providerOf(state, request);
    const urls = state.uploads.prepare('recording', requiredText(objectOf(request.body), 'fileName'));
    return reply.code(201).send(urls);
  });

  app.post('/recorder/sessions', async (request, reply) => {
    const providerUserId = providerOf(state, request);
    const fields = objectOf(request.body);
    const client = state.users.findAs('Client', requiredText(fields, 'contractId'));
    if (!client?.providerUserIds.includes(providerUserId)) throw invalid('The provider has no access to this client.');
    const url = requiredText(fields, 'fileUrl');
    if (!state.uploads.findByFileUrl(url)?.sha256) throw invalid('The recording has not been uploaded.');
    const date = optionalText(fields, 'date') ?? new Date(state.nowMs()).toISOString();
    if (!isIsoDate(date)) throw invalid('date must be an ISO 8601 date and time.');
    const session = createSession(state, {
      providerUserId,
      clientUserIds: [client.userId],
      noteTemplateIds: [templateOf('Standard')],
      input: { kind: 'recording', urls: [url], content: 'Recording' },
      date,
    });
    return reply.code(201).send({ sessionId: session.sessionId });
  });
}

function openBrowserSession(state: SimulatorState, reply: FastifyReply, token: string): void {
  const browser = state.recorderAccess.redeem(token) ?? '';
  reply.header('set-cookie', `${COOKIE}=${browser}; Path=/recorder; HttpOnly; SameSite=Strict`);
}

function providerOf(state: SimulatorState, request: FastifyRequest): string {
  const cookies = (request.headers.cookie ?? '').split('; ');
  const browser = cookies.find((cookie) => cookie.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1) ?? '';
  const providerUserId = state.recorderAccess.providerOf(browser);
  if (!providerUserId) throw new Refusal(403, 'Open the recorder with a new token.');
  return providerUserId;
}

function html(reply: FastifyReply, page: string): FastifyReply {
  return reply.type('text/html; charset=utf-8').send(page);
}

function script(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('text/javascript; charset=utf-8').send(text);
}
