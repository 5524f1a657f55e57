import Fastify, { type FastifyInstance } from 'fastify';
import { controlRoutes } from './admin/control-routes.js';
import { sessionAdminRoutes } from './admin/session-admin-routes.js';
import { uploadAdminRoutes } from './admin/upload-admin-routes.js';
import { userAdminRoutes } from './admin/user-admin-routes.js';
import { webhookAdminRoutes } from './admin/webhook-admin-routes.js';
import { complianceRoutes } from './compliance/compliance-routes.js';
import { servePlatform } from './gate/serve.js';
import { type SimulatorOptions, settingsOf } from './options.js';
import { authenticationRoutes } from './recorder/authentication-routes.js';
import { recorderRoutes } from './recorder/recorder-routes.js';
import { Refusal } from './refusal.js';
import { sessionRoutes } from './sessions/session-routes.js';
import { SimulatorState } from './state.js';
import { steadyNowMs } from './timers.js';
import { uploadTarget, uploadUrlRoutes } from './uploads/upload-routes.js';
import { userRoutes } from './users/user-routes.js';

/** A running simulator. */
export interface Simulator {
  /** Its URL, without a trailing slash. */
  url: string;
  /** Its data, which tests may read and change. */
  state: SimulatorState;
  /** Closes every connection and cancels every timer. */
  close(): Promise<void>;
}

/** Starts a simulator. @throws if the port is in use */
export async function buildSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { seed = randomSeed(), nowMs = steadyNowMs, after } = options;
  const state = new SimulatorState(settingsOf(options), seed, nowMs, after);
  const app = Fastify({ forceCloseConnections: true, bodyLimit: 5 * 1024 * 1024 });
  answerRefusals(app, state);
  readJson(app);
  servePlatform(app, state, options.apiKey ?? DEFAULT_API_KEY, [
    ...userRoutes(state),
    ...sessionRoutes(state),
    ...uploadUrlRoutes(state),
    ...complianceRoutes(state),
    ...authenticationRoutes(state),
  ]);
  await app.register((target) => uploadTarget(target, state));
  await app.register((pages) => recorderRoutes(pages, state));
  await app.register(
    async (admin) => {
      guardAdmin(admin);
      admin.setReplySerializer((answer) => JSON.stringify(answer, null, 2)); // browsers send requests to it
      controlRoutes(admin, state);
      userAdminRoutes(admin, state);
      webhookAdminRoutes(admin, state);
      sessionAdminRoutes(admin, state);
      uploadAdminRoutes(admin, state);
    },
    { prefix: '/_simulator' },
  );

  const url = await app.listen({ host: options.host ?? '127.0.0.1', port: options.port ?? 0 });
  state.publicUrl = (options.publicUrl ?? url).replace(/(?<!\/)\/+$/, '');
  return {
    url,
    state,
    close: async () => {
      state.close();
      await app.close();
    },
  };
}

const NOTHING_HERE = '<!doctype html><html><title>404 Not Found</title><h1>Not Found</h1></html>';

export const DEFAULT_API_KEY = 'simulator-api-key';

function randomSeed(): number {
  return Math.floor(Math.random() * 2 ** 32);
}

/** The spec does not show the body of the platform's errors; here it is `{"message": …}`. */
function answerRefusals(app: FastifyInstance, state: SimulatorState): void {
  app.setNotFoundHandler((_request, reply) => {
    if (state.settings.unknownPaths === 'page') return reply.code(404).type('text/html').send(NOTHING_HERE);
    return reply.code(404).send({ message: 'Unknown route. simulator/README.md lists all routes.' });
  });
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    if (error instanceof Refusal) {
      return reply.code(error.status).headers(error.headers).send({ message: error.message });
    }
    const status = error.statusCode ?? 500;
    if (status >= 500) console.error(error);
    return reply.code(status).send({ message: status >= 500 ? 'Something went wrong.' : error.message });
  });
}

const LOOPBACK = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/;

/** The admin API needs no key, so only this machine may use it. */
function guardAdmin(app: FastifyInstance): void {
  app.addHook('onRequest', async (request) => {
    if (!LOOPBACK.test(request.socket.remoteAddress ?? '')) {
      throw new Refusal(403, 'The admin API is available only on loopback.');
    }
  });
}

/** An empty body counts as no body, even if its Content-Type is JSON. */
function readJson(app: FastifyInstance): void {
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => {
    try {
      done(null, text === '' ? undefined : JSON.parse(text.toString()));
    } catch {
      done(new Refusal(400, 'The body is not valid JSON.'));
    }
  });
}
