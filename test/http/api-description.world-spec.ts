import { readFileSync } from 'node:fs';
import type { OpenAPIObject } from '@nestjs/swagger';
import { ApiDescription } from '../../harness/world/api-description.js';
import type { Answer } from '../../harness/world/request.js';
import { version } from '../../src/config/version.js';
import { PROBLEM_TYPES } from '../../src/words/problem-types.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

interface Schema {
  type?: string;
  nullable?: boolean;
  enum?: string[];
  required: string[];
  properties: Record<string, Schema>;
}
interface Media {
  schema: Schema;
}
interface Document {
  paths: Record<
    string,
    Record<string, { responses: Record<string, { $ref?: string; content?: Record<string, Media> }> }>
  >;
  components: { schemas: Record<string, Schema>; responses: Record<string, { content: Record<string, Media> }> };
}

const described = () => ApiDescription.of(world.app);
const document = async () => structuredClone((await described()).document) as unknown as Document;
const provider = { email: 'pia@example.org', firstName: 'Pia', lastName: 'Ruiz' };

/** Checks an answer after a change of the description. @returns the fault; undefined if it passes */
async function faultAfter(
  change: (copy: Document) => unknown,
  [method, path]: readonly [string, string],
  answer: Pick<Answer<unknown>, 'status' | 'headers' | 'text'>,
): Promise<string | undefined> {
  const copy = await document();
  change(copy);
  try {
    new ApiDescription(copy as unknown as OpenAPIObject).check(method, path, answer);
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
}

const answerOf = (status: number, type: string, text: string) => ({
  status,
  headers: new Headers({ 'content-type': type }),
  text,
});

test('/openapi.json is the description that answers are checked against', async () => {
  const { body } = await world.call('GET', '/openapi.json');
  expect(body).toEqual((await described()).document);
  expect(body).toMatchObject({ info: { version: version() } });
});

test('/contract.schema.json is the schema in docs/reference', async () => {
  const { body } = await world.call('GET', '/contract.schema.json');
  expect(body).toEqual(JSON.parse(readFileSync('docs/reference/contract.schema.json', 'utf8')));
});

describe('a real answer fails the check', () => {
  const PUT = ['PUT', '/v1/providers/p-1'] as const;
  const put = () => world.call(...PUT, { body: provider });
  const SAYS = 'PUT /v1/providers/{externalId} answered 202, which differs from /openapi.json: ';

  test.each<[string, (copy: Document) => unknown, string]>([
    [
      'a field is removed from the description',
      ({ components }) => delete components.schemas.PersonResponse?.properties.platformUserId,
      '/platformUserId is not described.',
    ],
    [
      'a nested field is removed',
      ({ components }) => delete components.schemas.SyncResponse?.properties.state,
      '/sync/state is not described.',
    ],
    [
      'a field has another type',
      ({ components }) =>
        Object.assign(components.schemas.PersonResponse?.properties.externalId ?? {}, { type: 'number' }),
      '/externalId must be number.',
    ],
    [
      'a field can no longer be null',
      ({ components }) => delete components.schemas.PersonResponse?.properties.inviteUrl?.nullable,
      '/inviteUrl must be string.',
    ],
    [
      'a word is removed from a list of words',
      ({ components }) => Object.assign(components.schemas.SyncResponse?.properties.state ?? {}, { enum: ['synced'] }),
      '/sync/state must be equal to one of the allowed values.',
    ],
    [
      'a field is required that never comes',
      ({ components }) => components.schemas.PersonResponse?.required.push('birthday'),
      "the body must have required property 'birthday'.",
    ],
    [
      'its status is removed',
      ({ paths }) => delete paths['/v1/providers/{externalId}']?.put?.responses['202'],
      'this status is not described.',
    ],
    [
      'its media type is removed',
      ({ paths }) => delete paths['/v1/providers/{externalId}']?.put?.responses['202']?.content?.['application/json'],
      'the media type application/json is not described.',
    ],
  ])('%s', async (_name, change, fault) => {
    const answer = await put();
    expect(await faultAfter(() => undefined, PUT, answer)).toBeUndefined();
    expect(await faultAfter(change, PUT, answer)).toBe(SAYS + fault);
  });

  test('its problem type is removed', async () => {
    const GET = ['GET', '/v1/providers/none'] as const;
    const answer = await world.call(...GET);
    const change = ({ components }: Document) =>
      components.schemas.Problem?.properties.type?.enum?.splice(0, Infinity, 'urn:notebridge:problem:not-found');
    expect(await faultAfter(change, GET, answer)).toBe(
      'GET /v1/providers/{externalId} answered 404, which differs from /openapi.json: the problem type urn:notebridge:problem:provider-not-found is not described.',
    );
  });

  test('a header that it honoured is removed', async () => {
    const answer = await world.call(...PUT, { body: provider, wait: 1 });
    const change = ({ paths }: Document) =>
      Object.assign(paths['/v1/providers/{externalId}']?.put ?? {}, { parameters: [] });
    expect(await faultAfter(change, PUT, answer)).toMatch(/the header Prefer was honoured but is not described\.$/);
  });
});

test('each line of an answer in lines is checked', async () => {
  const line = JSON.stringify({ id: '1' });
  const fault = await faultAfter(
    () => undefined,
    ['GET', '/v1/audit?limit=1'],
    answerOf(200, 'application/x-ndjson', `${line}\n`),
  );
  expect(fault).toMatch(/the body must have required property/);
});

test('an unknown path may answer only that it is not found', async () => {
  const answer = await world.call('GET', '/v1/none');
  expect([answer.status, (await world.call('DELETE', '/v1/people/unknown-to-ehr')).status]).toEqual([404, 404]);
  expect(await faultAfter(() => undefined, ['GET', '/v1/none'], answerOf(200, 'application/json', '{}'))).toBe(
    'GET on a path that /openapi.json does not describe answered 200, which differs from /openapi.json: the operation is not described.',
  );
});

test('every successful answer with a body has a schema', async () => {
  const { paths } = await document();
  const bare = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { responses }]) =>
      Object.entries(responses)
        .filter(([status]) => status.startsWith('2') && status !== '204')
        .filter(([, { content = {} }]) => {
          const schemas = Object.values(content).map(({ schema }) => JSON.stringify(schema ?? {}));
          return schemas.length === 0 || schemas.some((schema) => schema === '{}' || schema === '{"type":"object"}');
        })
        .map(([status]) => `${method} ${path} ${status}`),
    ),
  );
  expect(bare).toEqual([]);
});

test('every type of problem is described, and no other', async () => {
  const { components } = await document();
  const types = Object.keys(PROBLEM_TYPES).map((type) => `urn:notebridge:problem:${type}`);
  expect(components.schemas.Problem?.properties.type?.enum).toEqual(types);
  expect(Object.keys(components.responses)).toEqual(['problem']);
});

test('every operation may answer a problem, below /fhir as an OperationOutcome', async () => {
  const { paths } = await document();
  const answers = Object.entries(paths).flatMap(([path, item]) =>
    Object.values(item).map(({ responses }) => [path.startsWith('/fhir/'), responses.default] as const),
  );
  const [outcome] = answers.flatMap(([isFhir, answer]) => (isFhir ? [answer] : []));
  expect(Object.keys(outcome?.content ?? {})).toEqual(['application/fhir+json']);
  for (const [isFhir, answer] of answers)
    expect(answer).toEqual(isFhir ? outcome : { $ref: '#/components/responses/problem' });
});
