import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { contractOf, FULL_CONTRACT } from '../clients/loopback-platform.spec-support.js';
import { checkContract, faultLine, readContract } from './contract-file.js';
import { OPERATION_NAMES } from './operations.js';

const faultsOf = (file: unknown) =>
  checkContract(JSON.stringify(file)).faults.map(({ setting, message }) => `${setting}: ${message}`);
const operation = (name: string, rule: unknown) => faultsOf({ operations: { [name]: rule } });
const lines = (text: string) => checkContract(text).faults.map(faultLine);
/** Reads a contract file with this text. */
function start(text: string) {
  const file = join(mkdtempSync(join(tmpdir(), 'notebridge-contract-')), 'c.json');
  writeFileSync(file, text);
  return readContract(file);
}

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
      faultsOf({
        events: { SESSION_CREATED: {}, PROCESSING_SESSION_NOTES_FINISHED: { sessionId: 'x', at: '' } },
      }),
    ).toEqual([
      'events.PROCESSING_SESSION_NOTES_FINISHED.sessionId: must be a JSON Pointer such as /data/id, or "" for the whole answer',
      'events.PROCESSING_SESSION_NOTES_FINISHED.at: is not known here, known: sessionId, processingId',
      'events.SESSION_CREATED: is not known here, known: PROCESSING_SESSION_NOTES_FINISHED',
    ]);
    expect(faultsOf({ events: [] })).toEqual(['events: must be an object of event types']);
  });

  it('locates the message of a refusal; without it, the text of the answer is shown', () => {
    expect(contractOf({ errors: { message: '/error/text' } }).errors).toEqual({ message: '/error/text' });
    expect(contractOf({}).errors).toEqual({});
    expect(faultsOf({ errors: { message: 'text', code: '/code' } })).toEqual([
      'errors.message: must be a JSON Pointer such as /data/id, or "" for the whole answer',
      'errors.code: is not known here, known: message',
    ]);
  });

  it('names note templates', () => {
    const contract = contractOf({ noteTemplates: { id: ' SOAP note ', plain: 'Plain' } });
    const names = ['id', 'plain', 'PLAIN', 'constructor'].map((each) => contract.templateName(each));
    expect(names).toEqual(['SOAP note', 'Plain', null, null]);
    expect(contractOf({}).templateName('plain')).toBeNull();
    expect(faultsOf({ noteTemplates: { a: ' ', b: 1 } })).toEqual([
      'noteTemplates.a: must be a name',
      'noteTemplates.b: must be a name',
    ]);
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
    expect(checkContract(JSON.stringify(FULL_CONTRACT)).faults).toEqual([]);
  });

  it('is rejected with all its faults, each with its JSON path', () => {
    const text = `{
      "apiKey": { "header": "X Key" },
      "colour": "blue",
      "operations": {
        "getSession": { "method": "FETCH", "path": "/s" },
        "getSesion": {},
        "updateSession": { "pth": "/s/{sessionId}" },
        "deleteUser": { "headers": { "Host": "x" } }
      }
    }`;
    expect(() => start(text)).toThrow(
      [
        'c.json is invalid. Fix these settings:',
        'line 2, column 19: apiKey.header: must be the name of an HTTP header that the connection does not set itself',
        'line 8, column 38: operations.deleteUser.headers.Host: must be the name of an HTTP header that the connection does not set itself',
        'line 5, column 25: operations.getSession.method: must be one of GET, POST, PUT, PATCH, DELETE',
        'line 5, column 44: operations.getSession.path: must hold {sessionId}',
        'line 7, column 28: operations.updateSession.pth: is not known here, known: method, path, headers, query, response',
        `line 6, column 9: operations.getSesion: is not known here, known: ${OPERATION_NAMES.join(', ')}`,
        'line 3, column 7: colour: is not known here, known: $schema, apiKey, operations, events',
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
    ['getSession', { path: '/{sessionId}', query: { v: 2 } }, 'query.v: must be a text'],
    ['getSession', { path: '/{sessionId}', query: { v: '{size}' } }, 'query.v: holds {size}, known here: {sessionId}'],
    [
      'getSession',
      { path: '/{sessionId}', headers: { 'X-A': 'a\r\nB: c' } },
      'headers.X-A: must hold printable ASCII only',
    ],
    ['getSession', { path: '/{sessionId}', response: { session: 'data' } }, 'response.session: must be a JSON Pointer'],
    ['getSession', { path: '/{sessionId}', response: { id: '/id' } }, 'response.id: is not known here, known: session'],
    ['createSession', { body: {} }, 'body: is not known here'],
    ['createSession', { upload: {} }, 'upload: is not known here'],
    ['complianceUploadUrl', { upload: { method: 'GET' } }, 'upload.method: must be PUT or POST'],
    ['recordingUploadUrl', { body: { a: ['{name}'] } }, 'body: holds {name}, known here: {fileName}'],
    ['getComplianceJob', { states: { completed: ['a'] } }, 'states.failed: must be set'],
    ['getComplianceJob', { states: { completed: ['a'], failed: [] } }, 'failed: must be a list of at least one text'],
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
    ['"operations": { "getSession": { "headers": [] } }', 'operations.getSession.headers'],
  ])('does not accept null for an absent setting: { %s }', (text, place) => {
    expect(lines(`{ ${text} }`)).toEqual([expect.stringContaining(` ${place}: must `)]);
  });

  it('accepts a parameter in the query', () => {
    expect(operation('getProcessingSession', { path: '/processing', query: { id: '{processingId}' } })).toEqual([]);
  });

  it.each([
    ['{\n  "apiKey": secret }', 'line 2, column 13: invalid symbol'],
    ['secret', 'line 1, column 1: invalid symbol'],
    ['{ "apiKey": "secret" ]', 'line 1, column 22: comma is expected'],
    ['{ "apiKey": "secret",\n}', 'line 2, column 1: property name is expected'],
    ["{ 'secret': 1 }", 'line 1, column 3: invalid symbol'],
    ['{ "secret" 1 }', 'line 1, column 12: colon is expected'],
    ['{}\n{ "secret": 1 }', 'line 2, column 1: end of file is expected'],
    ['{\n  // secret\n}', 'line 2, column 3: invalid comment token'],
    ['{ "apiKey": "secret"', 'line 1, column 21: close brace is expected'],
    ['"secret', 'line 1, column 1: unexpected end of string'],
    [`${'['.repeat(200)}`, 'line 1, column 1: it is nested more than 100 levels'],
    ['', 'line 1, column 1: value is expected'],
  ])('is rejected at the first place that is not JSON, without quoting it: %s', (text, expected) => {
    expect(lines(text)).toEqual([expected]);
    expect(() => start(text)).toThrow(expected);
  });

  it('has JSON exactly where JSON.parse finds it', () => {
    const edit = fc.tuple(fc.nat(), fc.constantFrom('', '"', ',', '}', '[', '\\', '0', 'e', ' ', '\n'));
    fc.assert(
      fc.property(fc.json(), fc.array(edit, { maxLength: 2 }), (json, edits) => {
        const text = edits.reduce((all, [at, more]) => {
          const place = at % (all.length + 1);
          return all.slice(0, place) + more + all.slice(place + 1);
        }, json);
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        const isFault = checkContract(text).faults.some(({ setting }) => setting === '');
        expect(isFault).toBe(!isJson);
      }),
      propertyRuns(),
    );
  });

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
        const faults = faultsOf(content);
        for (const fault of faults) expect(fault).toMatch(/^[^\n]*: /);
        if (faults.length === 0) expect(() => contractOf(content as object)).not.toThrow();
      }),
      propertyRuns(),
    );
  });
});
