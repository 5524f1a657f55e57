import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { Ajv2019, type ErrorObject, type ValidateFunction } from 'ajv/dist/2019.js';
import addFormats from 'ajv-formats';
import { FHIR_JSON } from '../../src/fhir/operation-outcome.js';
import openApiMetadata from '../../src/generated/metadata.js';
import { openApiDocument } from '../../src/setup.js';
import { mediaTypeOf } from '../../src/text/json-text.js';
import { problemTypeIn } from '../problem-type.js';
import type { Answer } from './request.js';

const PROBLEM = 'application/problem+json';
const LINES = 'application/x-ndjson';

/** Pages for browsers. The API's description does not cover them. */
const OUTSIDE = /^\/($|console(\/|$)|docs(\/|$)|(openapi|contract\.schema)\.json$)/;

/** Problems of a request that leads to no operation. */
const UNKNOWN_ROUTE = ['bad-request', 'bad-url', 'headers-too-large', 'not-found', 'url-too-long'];

type Schema = Record<string, unknown>;

interface Content {
  readonly [mediaType: string]: { readonly schema?: Schema };
}

interface Response {
  readonly $ref?: string;
  readonly content?: Content;
}

interface DescribedOperation {
  readonly parameters?: readonly { readonly name?: string }[];
  readonly responses: Readonly<Record<string, Response>>;
}

interface Operation extends DescribedOperation {
  readonly method: string;
  readonly path: string;
  readonly segments: readonly string[];
}

/** The headers of an answer that tell which header of the request was honoured. */
const HONOURED: Record<string, string> = {
  'preference-applied': 'Prefer',
  'idempotent-replayed': 'Idempotency-Key',
};

type Checked = Pick<Answer<unknown>, 'status' | 'headers' | 'text'>;

/** The API's OpenAPI description, compiled so that each answer of the service can be checked against it. */
export class ApiDescription {
  private static read: Promise<ApiDescription> | undefined;

  private readonly ajv = new Ajv2019({ strict: false, logger: false });
  private readonly operations: Operation[];
  /** By the text of the schema, because many operations answer with the same one. */
  private readonly validators = new Map<string, ValidateFunction>();

  constructor(readonly document: OpenAPIObject) {
    addFormats.default(this.ajv);
    const schemas = (document.components?.schemas ?? {}) as Record<string, Schema>;
    const $defs = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, opened(schema)]));
    this.ajv.addSchema({ $id: 'api', $defs });
    this.operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item as Record<string, DescribedOperation>).map(([method, operation]) => ({
        ...operation,
        method: method.toUpperCase(),
        path,
        segments: path.split('/'),
      })),
    );
  }

  /** The description of a service, as `/openapi.json` gives it: read once per process, because settings do not change it. */
  static of(app: NestFastifyApplication): Promise<ApiDescription> {
    ApiDescription.read ??= SwaggerModule.loadPluginMetadata(openApiMetadata).then(
      () => new ApiDescription(JSON.parse(JSON.stringify(openApiDocument(app)))),
    );
    return ApiDescription.read;
  }

  /** @throws {Error} if the description does not cover the answer */
  check(method: string, path: string, answer: Checked): void {
    const [pathname = ''] = path.split('?', 1);
    if (OUTSIDE.test(pathname)) return;
    const operation = this.find(method === 'HEAD' ? 'GET' : method, pathname);
    const fault = operation ? this.faultOf(operation, method, answer) : faultOfUnknownRoute(answer);
    if (fault === undefined) return;
    const name = operation ? `${method} ${operation.path}` : `${method} on a path that /openapi.json does not describe`;
    throw new Error(`${name} answered ${answer.status}, which differs from /openapi.json: ${fault}`);
  }

  /** Finds the operation of a path; a literal segment goes before a parameter, as in the router. */
  private find(method: string, pathname: string): Operation | undefined {
    const asked = pathname.split('/');
    const fitting = this.operations.filter(
      ({ method: own, segments }) =>
        own === method &&
        segments.length === asked.length &&
        segments.every((segment, at) => segment === asked[at] || (segment.startsWith('{') && asked[at] !== '')),
    );
    const [first] = fitting.sort((a, b) => a.path.split('{').length - b.path.split('{').length);
    return first;
  }

  private faultOf(
    { parameters, responses }: Operation,
    method: string,
    { status, headers, text }: Checked,
  ): string | undefined {
    for (const [echoed, name] of Object.entries(HONOURED)) {
      const isDescribed = parameters?.some((parameter) => parameter.name === name);
      if (headers.has(echoed) && !isDescribed) return `the header ${name} was honoured but is not described.`;
    }
    const described = responses[status] ?? (status >= 400 ? responses.default : undefined);
    if (!described) return 'this status is not described.';
    if (method === 'HEAD') return undefined;
    const content = this.resolved(described).content ?? {};
    const mediaType = mediaTypeOf(headers.get('content-type') ?? undefined);
    if (mediaType === '' && text === '') {
      return Object.keys(content).length === 0 ? undefined : 'a described body is missing.';
    }
    const schema = content[mediaType]?.schema;
    if (!content[mediaType]) return `the media type ${mediaType} is not described.`;
    if (!schema) return `${mediaType} has no schema.`;
    return this.faultOfBody(schema, mediaType, text);
  }

  private faultOfBody(schema: Schema, mediaType: string, text: string): string | undefined {
    if (mediaType === LINES) {
      const lines = text.split('\n').filter((line) => line !== '');
      return lines.map((line) => this.faultOfJson(schema, JSON.parse(line))).find((fault) => fault !== undefined);
    }
    return /\bjson$/.test(mediaType) ? this.faultOfJson(schema, JSON.parse(text)) : undefined;
  }

  private faultOfJson(schema: Schema, value: unknown): string | undefined {
    const text = JSON.stringify(schema);
    let validate = this.validators.get(text);
    if (!validate) {
      validate = this.ajv.compile(closed(schema));
      this.validators.set(text, validate);
    }
    return validate(value) ? undefined : inWords(validate.errors ?? [], value);
  }

  private resolved(response: Response): Response {
    if (response.$ref === undefined) return response;
    const name = response.$ref.slice(response.$ref.lastIndexOf('/') + 1);
    return this.document.components?.responses?.[name] as Response;
  }
}

/** Describes the fault by the deepest error, because the errors of the alternatives around it only follow from it. */
function inWords(errors: readonly ErrorObject[], value: unknown): string {
  const [error] = [...errors].sort((a, b) => b.instancePath.split('/').length - a.instancePath.split('/').length);
  if (!error) return 'the body is not as described.';
  const { instancePath, params } = error;
  if (instancePath === '/type' && String((value as Schema).type).startsWith('urn:notebridge:problem:'))
    return `the problem type ${(value as Schema).type} is not described.`;
  const extra: string | undefined = params.unevaluatedProperty ?? params.additionalProperty;
  if (extra !== undefined) return `${instancePath}/${extra} is not described.`;
  return `${instancePath === '' ? 'the body' : instancePath} ${error.message}.`;
}

function faultOfUnknownRoute({ headers, text }: Checked) {
  const mediaType = mediaTypeOf(headers.get('content-type') ?? undefined);
  const isError = mediaType === PROBLEM || mediaType === FHIR_JSON;
  const problem = isError ? problemTypeIn(JSON.parse(text)) : undefined;
  const isUnknown = problem !== undefined && UNKNOWN_ROUTE.includes(problem);
  return isUnknown ? undefined : 'the operation is not described.';
}

/** A schema of a whole value: members that it does not name are refused. */
function closed(schema: Schema): Schema {
  const isObject = schema.type === 'object' || '$ref' in schema || 'properties' in schema || 'allOf' in schema;
  const { nullable, ...rest } = opened(schema);
  const value = isObject ? { ...rest, unevaluatedProperties: false } : rest;
  if (!nullable) return value;
  const { enum: words, type } = value as { enum?: unknown[]; type?: string };
  if (isObject || type === undefined) return { anyOf: [value, { type: 'null' }] };
  return { ...value, type: [type, 'null'], ...(words && { enum: [...words, null] }) };
}

/** A schema that others may complete (`allOf`), with its members closed. */
function opened(schema: Schema): Schema {
  const { $ref, properties, items, additionalProperties, allOf, oneOf, anyOf, ...rest } = schema as Schema & {
    $ref?: string;
    properties?: Record<string, Schema>;
    items?: Schema;
    additionalProperties?: Schema | boolean;
  } & Partial<Record<'allOf' | 'oneOf' | 'anyOf', Schema[]>>;
  const members = Object.entries(properties ?? {}).map(([name, member]) => [name, closed(member)]);
  const isSchema = typeof additionalProperties === 'object';
  return {
    ...rest,
    ...($ref && { $ref: $ref.replace('#/components/schemas/', 'api#/$defs/') }),
    ...(properties && { properties: Object.fromEntries(members) }),
    ...(items && { items: closed(items) }),
    ...(additionalProperties !== undefined && {
      additionalProperties: isSchema ? closed(additionalProperties) : additionalProperties,
    }),
    ...(allOf && { allOf: allOf.map(opened) }),
    ...(oneOf && { oneOf: oneOf.map(closed) }),
    ...(anyOf && { anyOf: anyOf.map(closed) }),
  };
}
