import type { OpenAPIObject } from '@nestjs/swagger';
import { PROBLEM_TYPES } from '../../words/problem-types.js';

const text = { type: 'string' };
const count = { type: 'integer' };
const texts = { type: 'array', items: text };
const said = (description: string) => ({ ...text, description });
const object = <P extends object>(properties: P) => ({ type: 'object', properties, required: Object.keys(properties) });

const TYPES = Object.keys(PROBLEM_TYPES).map((type) => `urn:notebridge:problem:${type}`);

const MEMBERS = {
  type: { ...said('Branch on it. docs/reference/problems.md has the status and the meaning of each'), enum: TYPES },
  title: text,
  status: count,
  detail: said('One sentence to show'),
};

/** Members that only some problems have. */
const FURTHER_MEMBERS = {
  pointer: said('JSON Pointer of the field at fault'),
  retryAfterSeconds: { type: 'number', description: 'When the same request may succeed, as in Retry-After' },
  choices: { ...texts, description: 'The actions that are accepted now' },
  clients: count,
  continueAfter: said('The cursor from which all available events follow'),
  code: said('Why a file cannot be read'),
  count,
  errors: { type: 'array', items: object({ pointer: text, detail: text }), description: 'All fields at fault' },
  externalId: said('The id of the conflicting person, or of the person with a former id'),
  file: text,
  guards: { type: 'array', items: { $ref: '#/components/schemas/GuardResponse' } },
  job: said('Of the compliance job that was rejected'),
  kind: said('The id of that person'),
  line: count,
  missing: { ...texts, description: 'Settings' },
  next: { ...said('The cursor of the event that is next; null if none waits'), nullable: true },
  planned: count,
  platformMessage: { ...said('The words of the platform; null without `notes:read`'), nullable: true },
  reference: said('Finds the entry in the log'),
  removedAt: { type: 'string', format: 'date-time' },
  rotatedTo: text,
  scope: text,
  scopes: texts,
  session: text,
  state: text,
  sync: object({ state: text, code: { ...text, nullable: true } }),
};

const PROBLEM = {
  type: 'object',
  description: 'What is wrong, and what to do (RFC 9457)',
  properties: { ...MEMBERS, ...FURTHER_MEMBERS },
  required: Object.keys(MEMBERS),
};

const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } };

/** A problem as the answer of an operation. */
export const PROBLEM_RESPONSE = { description: 'A problem', content };

interface Operation {
  readonly responses: Record<string, { content?: object; $ref?: string }>;
}

/** Describes the problem once, and as the answer of every operation with any status that it does not describe itself. */
export function describeProblem(document: OpenAPIObject): OpenAPIObject {
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item) as Operation[]);
  for (const { responses } of operations) {
    for (const [status, own] of Object.entries(responses)) {
      if (status >= '4' && own.content) own.content = { ...own.content, ...content };
    }
    responses.default = { $ref: '#/components/responses/problem' };
  }
  const { schemas, responses } = document.components ?? {};
  document.components = {
    ...document.components,
    schemas: { ...schemas, Problem: PROBLEM },
    responses: { ...responses, problem: PROBLEM_RESPONSE },
  };
  return document;
}
