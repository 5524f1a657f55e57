import type { OpenAPIObject } from '@nestjs/swagger';
import { PROBLEM_MEMBERS } from '../../words/problem-members.js';
import { PROBLEM_TYPES } from '../../words/problem-types.js';

const TYPES = Object.keys(PROBLEM_TYPES).map((type) => `urn:notebridge:problem:${type}`);

const MEMBERS = {
  type: {
    type: 'string',
    description: 'Branch on it. docs/reference/problems.md has the status and the meaning of each',
    enum: TYPES,
  },
  title: { type: 'string' },
  status: { type: 'integer' },
  detail: { type: 'string', description: 'One sentence to show' },
};

const PROBLEM = {
  type: 'object',
  description: 'What is wrong, and what to do (RFC 9457)',
  properties: { ...MEMBERS, ...PROBLEM_MEMBERS },
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
