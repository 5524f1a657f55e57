const text = { type: 'string' };
const count = { type: 'integer' };
const texts = { type: 'array', items: text };
const said = (description: string) => ({ ...text, description });
const object = <P extends object>(properties: P) => ({ type: 'object', properties, required: Object.keys(properties) });

/** The members that only some problems have, as schemas of OpenAPI: ids and counts, never personal data. */
export const PROBLEM_MEMBERS = {
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
  id: said('Of the compliance job'),
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
