import type { OpenAPIObject } from '@nestjs/swagger';
import { END_USER_HEADERS, END_USER_SCHEMA } from '../identity/end-user.js';
import type { AccessRequirement } from '../identity/scopes.js';

/** Headers that every operation with a key accepts. */
const HEADERS = Object.fromEntries(
  END_USER_HEADERS.map(({ name, member }) => [
    name,
    {
      name,
      in: 'header' as const,
      required: false,
      description: `${member === 'purpose' ? "The EHR's code of the reason for the call" : "The EHR's id of the user on whose behalf it calls"}; kept in the audit log`,
      schema: END_USER_SCHEMA,
    },
  ]),
);

/**
 * Documents what the caller of each operation needs, in words and as `x-scopes`.
 *
 * @param neededFor what a route requires, by its method and path; the guards use the same
 */
export function describeAccess(
  document: OpenAPIObject,
  neededFor: (method: string, path: string) => AccessRequirement | undefined,
): OpenAPIObject {
  document.components = { ...document.components, parameters: { ...document.components?.parameters, ...HEADERS } };
  const references = Object.keys(HEADERS).map((name) => ({ $ref: `#/components/parameters/${name}` }));
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of ['get', 'put', 'post', 'delete', 'patch'] as const) {
      const operation = item[method];
      const needed = neededFor(method.toUpperCase(), path);
      if (!operation || needed === undefined) continue;
      operation.description = [operation.description, inWords(needed)].filter(Boolean).join('\n\n');
      if (needed === 'public') operation.security = [];
      else {
        operation.parameters = [...(operation.parameters ?? []), ...references];
        Object.assign(operation, { 'x-scopes': [...needed] });
      }
    }
  }
  return document;
}

function inWords(needed: AccessRequirement): string {
  if (needed === 'public') return 'Open to callers without a key.';
  if (needed.length === 0) return 'Any valid key is accepted.';
  return `Needs a key with the scope ${needed.map((scope) => `\`${scope}\``).join(' and ')}.`;
}
