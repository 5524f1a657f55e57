import { Problem } from '../http/problem/problem.js';
import type { ProblemType } from '../words/problem-types.js';
import { FHIR_ERRORS, operationOutcome } from './operation-outcome.js';

const issueOf = (problem: Problem) => operationOutcome(problem).issue[0];

describe('a problem as an OperationOutcome', () => {
  it.each<[number, ProblemType, string]>([
    [400, 'bad-cursor', 'invalid'],
    [400, 'bad-search', 'value'],
    [400, 'search-not-supported', 'not-supported'],
    [401, 'unauthenticated', 'login'],
    [403, 'forbidden-scope', 'forbidden'],
    [404, 'not-found', 'not-found'],
    [409, 'renamed', 'conflict'],
    [418, 'refused', 'processing'],
    [429, 'too-many-requests', 'throttled'],
    [500, 'internal', 'exception'],
    [501, 'not-configured', 'exception'],
    [503, 'database-unavailable', 'transient'],
    [503, 'data-unreadable', 'exception'],
  ])('%i %s has the code %s', (status, type, code) => {
    expect(issueOf(new Problem(type, 'Words.', { status }))).toEqual({
      severity: status >= 500 ? 'fatal' : 'error',
      code,
      details: { coding: [{ system: 'urn:notebridge:problem', code: type }] },
      diagnostics: 'Words.',
    });
  });

  it('names the ids and counts of the problem, and no lists', () => {
    const extensions = { externalId: 'C-2', count: 3, scopes: ['notes:read'] };
    expect(issueOf(new Problem('renamed', 'Use its new id.', { extensions }))).toMatchObject({
      diagnostics: 'Use its new id. (externalId: C-2, count: 3)',
    });
  });
});

it('is the form of errors of /fhir and all below it', () => {
  const paths = ['/fhir', '/fhir/', '/fhir/x/y', '/fhirs', '/v1/fhir', '/'];
  expect(paths.filter((path) => FHIR_ERRORS.isOf(path))).toEqual(['/fhir', '/fhir/', '/fhir/x/y']);
});
