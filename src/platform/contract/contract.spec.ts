import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { contractOf, FULL_CONTRACT } from '../clients/loopback-platform.spec-support.js';
import { parseContract, readContract } from './contract.js';
import { contractFaults } from './contract-schema.js';
import { OPERATION_NAMES } from './operations.js';

const operation = (name: string, rule: unknown) => contractFaults({ operations: { [name]: rule } });

describe('the contract file', () => {
  it('extends and overrides the facts of the spec', () => {
    const { apiKey, operations } = contractOf({
      apiKey: { header: 'X-Key', scheme: 'Key' },
      operations: {
        checkUser: { path: '/v9/check', headers: { 'X-Version': '9' }, response: { userId: '/user/id' } },
        getSession: { method: 'GET', path: '/s/{sessionId}' },
      },
    });
    expect(apiKey).toEqual({ header: 'X-Key', scheme: 'Key' });
    expect(operations.checkUser).toEqual({
      method: 'POST',
      path: '/v9/check',
      headers: { 'X-Version': '9' },
      query: {},
      response: { isUserExists: '/isUserExists', userId: '/user/id' },
    });
    expect(operations.getSession).toMatchObject({ method: 'GET', path: '/s/{sessionId}', response: { session: '' } });
    expect(operations.deleteUser).toMatchObject({ method: 'DELETE', path: '/users/{userId}' });
  });

  it('locates ids in events that the spec does not show; others are not read', () => {
    const events = { PROCESSING_SESSION_NOTES_FINISHED: { sessionId: '/payload/session' } };
    expect(contractOf({ events }).events).toEqual(events);
    expect(contractOf({}).events).toEqual({});
    expect(
      contractFaults({
        events: { SESSION_CREATED: {}, PROCESSING_SESSION_NOTES_FINISHED: { sessionId: 'x', at: '' } },
      }),
    ).toEqual([
      'events.PROCESSING_SESSION_NOTES_FINISHED.sessionId: must be a JSON Pointer such as /data/id, or "" for the whole answer',
      'events.PROCESSING_SESSION_NOTES_FINISHED.at: is not known here, known: sessionId, processingId',
      'events.SESSION_CREATED: is not known here, known: PROCESSING_SESSION_NOTES_FINISHED',
    ]);
    expect(contractFaults({ events: [] })).toEqual(['events: must be an object of event types']);
  });

  it('is not needed for operations that the spec shows', () => {
    const { apiKey, operations } = readContract(undefined);
    const shown = OPERATION_NAMES.filter((name) => operations[name].path !== undefined);
    expect(apiKey).toBeUndefined();
    expect(shown.map((name) => `${name} ${operations[name].method} ${operations[name].path}`)).toEqual([
      'checkUser POST /users/check',
      'createProvider POST /users/providers',
      'createClient POST /users/clients',
      'setClientProviders POST /users/{userId}/providers',
      'deleteUser DELETE /users/{userId}',
      'updateSession PATCH /api/v2/therapy-session/{sessionId}',
      'complianceUploadUrl GET /compliance/upload-url',
      'getComplianceJob GET /compliance/job/{jobId}',
      'initiateAuth POST /authentication/initiate-auth',
    ]);
  });

  it('may contain every operation', () => {
    expect(contractFaults(FULL_CONTRACT)).toEqual([]);
  });

  it('is rejected with all its faults, each with its JSON path', () => {
    const text = JSON.stringify({
      apiKey: { header: 'X Key' },
      colour: 'blue',
      operations: {
        getSession: { method: 'FETCH', path: '/s' },
        getSesion: {},
        deleteUser: { headers: { Host: 'x' } },
      },
    });
    expect(() => parseContract(text, 'c.json')).toThrow(
      [
        'PLATFORM_CONTRACT c.json is invalid. Fix these settings:',
        'apiKey.header: must be the name of an HTTP header',
        'operations.deleteUser.headers.Host: is set by the connection itself, name another header',
        'operations.getSession.method: must be GET, POST, PUT, PATCH, DELETE',
        'operations.getSession.path: must hold {sessionId}',
        `operations.getSesion: is not known here, known: ${OPERATION_NAMES.join(', ')}`,
        'colour: is not known here, known: apiKey, operations, events',
      ].join('\n  '),
    );
  });

  it.each([
    ['getSession', 5, 'must be an object'],
    ['getSession', { path: 's/{sessionId}' }, 'path: must begin with one /'],
    ['getSession', { path: '//host/{sessionId}' }, 'path: must begin with one /'],
    ['getSession', { path: '/a/../{sessionId}' }, 'nor . and .. as segments'],
    ['getSession', { path: '/a?b={sessionId}' }, 'hold neither blanks, ?, #'],
    ['getSession', { path: '/{sessionId}/{userId}' }, 'path: holds {userId}, known here: {sessionId}'],
    ['getSession', { path: '/{sessionId}/{' }, 'path: holds a brace that belongs to no placeholder'],
    ['getSession', { path: '/{sessionId}', query: { v: 2 } }, 'query.v: must be a text'],
    ['getSession', { path: '/{sessionId}', query: { v: '{size}' } }, 'query.v: holds {size}, known here: {sessionId}'],
    [
      'getSession',
      { path: '/{sessionId}', headers: { 'X-A': 'a\r\nB: c' } },
      'headers.X-A: must hold printable ASCII only',
    ],
    ['getSession', { path: '/{sessionId}', response: { session: 'data' } }, 'response.session: must be a JSON Pointer'],
    ['getSession', { path: '/{sessionId}', response: { id: '/id' } }, 'response.id: is not known here, known: session'],
    ['getSession', { method: 'GET', path: '/{sessionId}', body: {} }, "body: can't be sent with GET, use query"],
    ['createSession', { body: {} }, 'body: is not known here'],
    ['createSession', { upload: {} }, 'upload: is not known here'],
    ['complianceUploadUrl', { body: {} }, "body: can't be sent with GET, use query"],
    ['complianceUploadUrl', { upload: { method: 'GET' } }, 'upload.method: must be PUT, POST'],
    ['recordingUploadUrl', { body: { a: ['{name}'] } }, 'body.a.0: holds {name}, known here: {fileName}'],
    ['getComplianceJob', { states: { completed: ['a'] } }, 'states.failed: must be a list of at least one text'],
    ['getComplianceJob', { states: { completed: ['a'], failed: ['a'] } }, "a state can't be in both"],
    ['initiateAuth', { headers: { authorization: 'x' } }, "authorization: carries the API key and can't be set here"],
  ])('%s %j: %s', (name, rule, expected) => {
    expect(operation(name, rule)).toEqual([expect.stringContaining(expected)]);
  });

  it.each([
    ['"operations": { "checkUser": { "path": null } }', 'operations.checkUser.path'],
    ['"operations": { "getSession": { "path": null } }', 'operations.getSession.path'],
    ['"operations": { "checkUser": { "method": null } }', 'operations.checkUser.method'],
    ['"operations": { "checkUser": null }', 'operations.checkUser'],
    ['"operations": null', 'operations'],
    ['"apiKey": null', 'apiKey'],
    ['"apiKey": {}', 'apiKey.header'],
    ['"operations": []', 'operations'],
    ['"operations": { "getSession": { "headers": { "constructor": 5 } } }', 'operations.getSession.headers'],
    ['"operations": { "getSession": { "headers": [] } }', 'operations.getSession.headers'],
  ])('does not accept null for an absent setting: { %s }', (text, place) => {
    expect(() => parseContract(`{ ${text} }`, 'contract.json')).toThrow(`${place}: must `);
  });

  it('accepts a parameter in the query', () => {
    expect(operation('getProcessingSession', { path: '/processing', query: { id: '{processingId}' } })).toEqual([]);
  });

  it.each(['{\n  "apiKey": secret }', 'secret', '{ "apiKey": "secret" ]', '"secret', ''])(
    'is rejected if it is not JSON, without quoting it: %s',
    (text) => {
      const parsed = () => parseContract(text, 'c.json');
      expect(parsed).toThrow(/^PLATFORM_CONTRACT c\.json is not JSON: .+\.$/);
      expect(parsed).not.toThrow('secret');
    },
  );

  it('is read from its path; a path without a file is named', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'contract-')), 'c.json');
    expect(() => readContract(file)).toThrow(`PLATFORM_CONTRACT names ${file}, which can't be read (ENOENT)`);
    writeFileSync(file, `\uFEFF${JSON.stringify(FULL_CONTRACT)}`);
    expect(readContract(file).operations.createSession.path).toBe('/sessions');
  });

  it('is either rejected with its faults or usable, for any content', () => {
    const leaf = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom('GET', '/x/{sessionId}', '', '/a'));
    const rule = fc.dictionary(
      fc.constantFrom('method', 'path', 'headers', 'query', 'body', 'response', 'upload', 'states', 'strange'),
      leaf,
    );
    const file = fc.oneof(
      fc.jsonValue(),
      fc.record({ apiKey: leaf, operations: fc.dictionary(fc.constantFrom(...OPERATION_NAMES), rule) }),
    );
    fc.assert(
      fc.property(file, (content) => {
        const faults = contractFaults(content);
        for (const fault of faults) expect(fault).toMatch(/^[^\n]*: /);
        if (faults.length === 0) expect(() => contractOf(content as object)).not.toThrow();
      }),
      propertyRuns(),
    );
  });
});
