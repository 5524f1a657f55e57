import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import multipart from '@fastify/multipart';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AnswerVisibility, documentVisibility, operationId } from './access/guard/visible-to.js';
import { Clock } from './config/clock.js';
import { Env } from './config/env.js';
import { Stopping } from './config/stopping.js';
import { version } from './config/version.js';
import { describeOutcomes } from './fhir/fhir-description.js';
import { FHIR_ERRORS } from './fhir/operation-outcome.js';
import openApiMetadata from './generated/metadata.js';
import { jsonBodyParser } from './http/body/body-policy.js';
import { validationPipe } from './http/body/validation.js';
import { describeProblem } from './http/problem/described-problem.js';
import { answerClientError, ProblemFilter } from './http/problem/problem.filter.js';
import { installEdge } from './http/server/edge.js';
import { RequestGate } from './http/server/request-gate.js';
import { Metrics } from './monitoring/metrics.js';
import { contractJsonSchema } from './platform/contract/contract-schema.js';
import { WebhooksController } from './webhooks/webhooks.controller.js';

/** Maximum bytes of a JSON body, unless a route has its own limit. */
const JSON_LIMIT = 64 * 1024;

/** Characters of one path segment: an EHR's id, percent-encoded. */
const PATH_SEGMENT_LIMIT = 1024;

/** The limits of a multipart body, sizes in bytes; a route that reads one sets its own. */
const MULTIPART_LIMITS = { fieldNameSize: 100, fieldSize: 64 * 1024, fields: 50, files: 500, fileSize: 2 * 1024 ** 3 };

/** The scheme and authority of a target in absolute form, as proxies send it (RFC 9112 §3.2.2). */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** The forms of errors other than problem details. */
const ERROR_FORMS = [FHIR_ERRORS];

/** How often to check for connections whose headers are late, in milliseconds. */
const CHECK_MS = 1_000;

/**
 * The HTTP server of the service and of its tests. It runs without Fastify's logger, which would create one per request
 * and log error messages that may quote the request. The access log and the problem filter log instead.
 */
export function httpAdapter(
  env: Pick<Env, 'TRUSTED_PROXIES' | 'HEADERS_TIMEOUT_SECONDS' | 'SILENCE_TIMEOUT_SECONDS'>,
): FastifyAdapter {
  const filter = new ProblemFilter(ERROR_FORMS);
  return new FastifyAdapter({
    trustProxy: env.TRUSTED_PROXIES.length > 0 && env.TRUSTED_PROXIES,
    genReqId: () => randomUUID(),
    bodyLimit: JSON_LIMIT,
    rewriteUrl: requestTarget,
    routerOptions: { maxParamLength: PATH_SEGMENT_LIMIT, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
    connectionTimeout: env.SILENCE_TIMEOUT_SECONDS * 1_000,
    // No deadline for a whole request: a file may take hours. Other bodies have theirs.
    http: {
      headersTimeout: env.HEADERS_TIMEOUT_SECONDS * 1_000,
      requestTimeout: 0,
      connectionsCheckingInterval: CHECK_MS,
    },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    // The router answers these before our hooks run.
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      filter.answer(error, request, reply),
  });
}

/** The target of a request in origin form, so that both forms reach the same route. */
function requestTarget({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  const target = url.replace(ORIGIN, '');
  return target.startsWith('/') ? target : `/${target}`;
}

/** Installs everything in front of the features. Call it after creating the application and before starting it. */
export async function setupApp(app: NestFastifyApplication): Promise<NestFastifyApplication> {
  const fastify = app.getHttpAdapter().getInstance();
  const gate = app.get(RequestGate, { strict: false });
  const receiver = app.get(WebhooksController, { strict: false });
  await installEdge(fastify, app.get(Env), {
    clock: app.get(Clock),
    metrics: app.get(Metrics),
    stopping: app.get(Stopping),
    gate,
  });
  app.useBodyParser('application/json', { bodyLimit: JSON_LIMIT }, jsonBodyParser(fastify));
  await app.register(multipart, { limits: MULTIPART_LIMITS });
  app.useGlobalPipes(validationPipe());
  const beforeAnswer = async (error: unknown, request: FastifyRequest) => {
    receiver.rejected(error, request);
    await gate.refused(error, request);
  };
  app.useGlobalFilters(new ProblemFilter(ERROR_FORMS, beforeAnswer));
  await describeApi(app);
  return app;
}

/** Describes the API: answers are reduced by the description, and callers can read it. */
async function describeApi(app: NestFastifyApplication): Promise<void> {
  await SwaggerModule.loadPluginMetadata(openApiMetadata);
  const document = openApiDocument(app);
  if (!app.get(Env).API_DOCS) return;
  SwaggerModule.setup('docs', app, document, { raw: [], customSiteTitle: 'notebridge API' });
  const json = Buffer.from(JSON.stringify(document));
  const fastify = app.getHttpAdapter().getInstance();
  fastify.get('/openapi.json', (_request, reply) => reply.type('application/json; charset=utf-8').send(json));
  const schema = Buffer.from(JSON.stringify(contractJsonSchema()));
  fastify.get('/contract.schema.json', (_request, reply) => reply.type('application/schema+json').send(schema));
}

const ABOUT = `Errors are RFC 9457 problem details with a stable \`type\`, and OperationOutcomes below \`/fhir\`. \`Prefer: wait=N\` (at most 60; use 50
behind a load balancer, as many end requests after 60 seconds) makes an asynchronous call wait until it is settled. Every POST that creates takes an \`Idempotency-Key\`. Lists are paged with
\`limit\` and \`cursor\`. Each operation names the scopes that its key needs (\`x-scopes\`). In a browser
session, those with \`x-step-up\` may also need a recent sign-in and a reason.
Members with \`x-visible-to\` are shown only to keys with all scopes that it names.`;

/** Describes every route from its decorators. */
export function openApiDocument(app: NestFastifyApplication): OpenAPIObject {
  const { PUBLIC_URL: address } = app.get(Env);
  const about = new DocumentBuilder()
    .setTitle('notebridge')
    .setDescription(ABOUT)
    .setVersion(version())
    .addBearerAuth({ type: 'http', scheme: 'bearer', bearerFormat: 'API key' })
    .addSecurityRequirements('bearer');
  if (address !== undefined) about.addServer(address);
  documentVisibility();
  const document = SwaggerModule.createDocument(app, about.build(), {
    operationIdFactory: operationId,
  });
  app.get(AnswerVisibility, { strict: false }).learn(document);
  return describeOutcomes(describeProblem(app.get(RequestGate, { strict: false }).describe(document)));
}
