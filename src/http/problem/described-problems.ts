import type { OpenAPIObject } from '@nestjs/swagger';
import type { Problem } from './problem.js';

/** Types of problems by their status; a name marks types that many routes share. */
export type ProblemTypes = Readonly<Record<number, readonly string[]>> & { readonly name?: string };

const PROBLEMS = Symbol('notebridge:problems');

/**
 * Documents problems of a route, or of all routes of a controller. The ones that every route shares are added to them.
 * Also of use to the decorators of parameters, because they are called with the route's name, too.
 */
export function Problems(...types: ProblemTypes[]): MethodDecorator & ClassDecorator {
  return (target: object, name?: string | symbol) => {
    const place: object = name === undefined ? target : Reflect.get(target, name);
    Reflect.defineMetadata(PROBLEMS, [...problemsOf(place), ...types], place);
  };
}

/** The problems that were documented on a handler or a controller. */
export function problemsOf(place: object): readonly ProblemTypes[] {
  return Reflect.getMetadata(PROBLEMS, place) ?? [];
}

/** The types of problems, by their status. */
export function typesOf(name: string, problems: readonly Pick<Problem, 'status' | 'type'>[]): ProblemTypes {
  const types: Record<number, string[]> = {};
  for (const { status, type } of problems) types[status] = [...(types[status] ?? []), type];
  return { ...types, name } as ProblemTypes;
}

/** Problems of every route. */
const EVERYWHERE: ProblemTypes = {
  400: ['bad-request', 'bad-url', 'bad-value', 'validation'],
  404: ['not-found'],
  429: ['too-many-requests'],
  503: ['data-key-missing', 'data-unreadable', 'database-unavailable', 'unavailable'],
};

/** Problems of every route that takes a body. */
export const OF_BODIES: ProblemTypes = {
  name: 'body',
  400: ['bad-content-length', 'bad-json', 'too-deep'],
  408: ['request-timeout'],
  413: ['body-too-large'],
  415: ['unsupported-encoding', 'unsupported-media-type'],
  503: ['busy'],
};

/** Problems of the other statuses; any request may meet them. */
const OTHERS = ['headers-too-large', 'internal', 'method-not-allowed', 'refused', 'request-timeout', 'url-too-long'];

const text = { type: 'string' };
const count = { type: 'integer' };
const texts = { type: 'array', items: text };
const moment = { type: 'string', format: 'date-time' };

const FIELD_FAULT = {
  type: 'object',
  properties: { pointer: text, detail: text },
  required: ['pointer', 'detail'],
};

/** Members that only problems of some types have. */
const EXTENSIONS = {
  choices: { ...texts, description: 'The actions that are accepted now' },
  clients: count,
  continueAfter: { ...text, description: 'The cursor from which all available events follow' },
  code: { ...text, description: 'Why a file cannot be read' },
  count,
  errors: { type: 'array', items: FIELD_FAULT, description: 'All fields at fault' },
  externalId: { ...text, description: 'The id of the conflicting person, or of the person with a former id' },
  file: text,
  guards: { type: 'array', items: { $ref: '#/components/schemas/GuardResponse' } },
  job: { ...text, description: 'Of the compliance job that was rejected' },
  kind: { ...text, description: 'The id of that person' },
  line: count,
  missing: { ...texts, description: 'Settings' },
  next: { ...text, nullable: true, description: 'The cursor of the event that is next; null if none waits' },
  planned: count,
  platformMessage: { ...text, nullable: true, description: 'The words of the platform; null without `notes:read`' },
  reference: { ...text, description: 'Finds the entry in the log' },
  removedAt: moment,
  rotatedTo: text,
  scope: text,
  scopes: texts,
  session: text,
  state: text,
  sync: {
    type: 'object',
    properties: { state: text, code: { ...text, nullable: true } },
    required: ['state', 'code'],
  },
};

const PROBLEM = {
  type: 'object',
  description: 'What is wrong, and what to do (RFC 9457)',
  properties: {
    type: { ...text, description: 'Branch on it' },
    title: text,
    status: count,
    detail: { ...text, description: 'One sentence to show' },
    pointer: { ...text, description: 'JSON Pointer of the field at fault' },
    retryAfterSeconds: { type: 'number', description: 'When the same request may succeed, as in Retry-After' },
    ...EXTENSIONS,
  },
  required: ['type', 'title', 'status', 'detail'],
};

interface Described {
  readonly description: string;
  readonly content: Record<string, { schema: object }>;
}

/** The description of a response with one of these problems. */
export function described(types: readonly string[]): Described {
  const type = { enum: types.map((each) => `urn:notebridge:problem:${each}`) };
  const schema = { allOf: [{ $ref: '#/components/schemas/Problem' }], properties: { type } };
  return { description: types.join(', '), content: { 'application/problem+json': { schema } } };
}

/** The operations of a description whose routes are known. @param routeOf a route, by its method and path */
export function* operationsOf<T>(document: OpenAPIObject, routeOf: (method: string, path: string) => T | undefined) {
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of ['get', 'put', 'post', 'delete', 'patch'] as const) {
      const operation = item[method];
      const route = routeOf(method.toUpperCase(), path);
      if (operation && route !== undefined) yield { operation, route };
    }
  }
}

/** Documents the problems of each operation. @param problems of a route, by its method and path */
export function describeProblems(
  document: OpenAPIObject,
  problems: (method: string, path: string) => readonly ProblemTypes[] | undefined,
): OpenAPIObject {
  const shared: Record<string, Described> = { others: described(OTHERS) };
  for (const { operation, route } of operationsOf(document, problems)) {
    const { responses } = operation as { responses: Record<string, object> };
    for (const [status, { name, types }] of byStatus([EVERYWHERE, ...route])) {
      shared[name] = described(types);
      responses[status] = withProblems(responses[status], shared[name], name);
    }
    responses.default = { $ref: '#/components/responses/others' };
  }
  const { schemas, responses } = document.components ?? {};
  document.components = {
    ...document.components,
    schemas: { ...schemas, Problem: PROBLEM } as NonNullable<typeof schemas>,
    responses: { ...responses, ...shared } as NonNullable<typeof responses>,
  };
  return document;
}

/** A reference to the shared response, unless the operation itself describes another body of this status. */
function withProblems(own: object | undefined, problems: Described, name: string): object {
  if (!own || !('content' in own)) return { $ref: `#/components/responses/${name}` };
  return { ...own, content: { ...(own.content as object), ...problems.content } };
}

/** The types of each status, and a name for exactly these types. */
function byStatus(groups: readonly ProblemTypes[]): [status: string, { name: string; types: string[] }][] {
  const statuses = new Set(groups.flatMap((group) => Object.keys(group).filter((key) => key !== 'name')));
  return [...statuses].sort().map((status) => {
    const own = groups.filter((group) => group[Number(status)]);
    const types = [...new Set(own.flatMap((group) => group[Number(status)] ?? []))].sort();
    const specific = own.filter(({ name }) => !name).flatMap((group) => group[Number(status)] ?? []);
    const usual: readonly string[] = EVERYWHERE[Number(status)] ?? [];
    const names = own.flatMap(({ name }) => name ?? []);
    const words = [...new Set([...names.sort(), ...specific.filter((type) => !usual.includes(type)).sort()])];
    return [status, { name: [status, ...words].join('.'), types }];
  });
}
