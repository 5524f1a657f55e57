import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { FULL_CONTRACT } from '../clients/loopback-platform.spec-support.js';
import { checkContract } from './contract-file.js';
import { contractJsonSchema } from './contract-schema.js';
import { OPERATION_NAMES } from './operations.js';

const accepts = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(contractJsonSchema());
const contractFaults = (file: unknown) => checkContract(JSON.stringify(file)).faults;

test('accepts complete contract files, also one that names its schema', () => {
  expect([accepts(FULL_CONTRACT), accepts.errors]).toEqual([true, null]);
  const file = { $schema: 'https://notes.example/contract.schema.json', ...FULL_CONTRACT };
  expect([accepts(file), contractFaults(file)]).toEqual([true, []]);
  expect(accepts(JSON.parse(readFileSync('simulator/contract.json', 'utf8')))).toBe(true);
});

test.each([
  [{ colour: 'blue' }],
  [{ operations: { getSesion: {} } }],
  [{ operations: { getSession: { method: 'FETCH' } } }],
  [{ operations: { getSession: { pth: '/' } } }],
  [{ operations: { getSession: { response: { session: 'data' } } } }],
  [{ operations: { createSession: { body: {} } } }],
  [{ operations: { getComplianceJob: { states: { completed: ['a'] } } } }],
  [{ operations: { recordingUploadUrl: { upload: { headers: { a: 1 } } } } }],
  [{ apiKey: {} }],
  [{ apiKey: { header: 'X', scheme: 'two words' } }],
  [{ events: { SESSION_CREATED: {} } }],
  [{ noteTemplates: { soap: 1 } }],
  [{ noteTemplates: ['soap'] }],
  [{ operations: null }],
  [[]],
])('rejects what the service rejects: %j', (file) => {
  expect([accepts(file), contractFaults(file)]).toEqual([false, expect.arrayContaining([expect.anything()])]);
});

test('accepts every file that the service accepts', () => {
  const leaf = fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom('GET', 'POST', '/x/{sessionId}', '/a', {}));
  const rule = fc.dictionary(
    fc.constantFrom('method', 'path', 'headers', 'query', 'body', 'response', 'upload'),
    leaf,
    {
      maxKeys: 2,
    },
  );
  const operations = fc.dictionary(fc.constantFrom(...OPERATION_NAMES), rule, { maxKeys: 2 });
  fc.assert(
    fc.property(fc.record({ operations }), (file) => {
      fc.pre(contractFaults(file).length === 0);
      expect([accepts(file), accepts.errors]).toEqual([true, null]);
    }),
    propertyRuns(),
  );
});
