import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { Env } from '../../config/env.js';

const ABOUT = `Errors are RFC 9457 problem details with a stable \`type\`. \`Prefer: wait=N\` (at most 60) makes an
asynchronous call wait until it is settled. Every POST that creates takes an \`Idempotency-Key\`. Lists are paged with
\`limit\` and \`cursor\`.`;

/** Describes every route from its decorators. */
function openApiDocument(app: NestFastifyApplication): OpenAPIObject {
  const { PUBLIC_URL: address } = app.get(Env);
  const about = new DocumentBuilder()
    .setTitle('notebridge')
    .setDescription(ABOUT)
    .setVersion('1')
    .addBearerAuth({ type: 'http', scheme: 'bearer', bearerFormat: 'API key' })
    .addSecurityRequirements('bearer');
  if (address !== undefined) about.addServer(address);
  return SwaggerModule.createDocument(app, about.build(), {
    operationIdFactory: (controller, method) => `${controller.replace(/Controller$/, '')}.${method}`,
  });
}

/** Serves `/openapi.json` and, readable, `/docs` with assets of our own; the document is made when first asked for. */
export function installOpenApi(app: NestFastifyApplication): void {
  SwaggerModule.setup('docs', app, () => openApiDocument(app), {
    jsonDocumentUrl: 'openapi.json',
    raw: ['json'],
    customSiteTitle: 'notebridge API',
  });
}
