import type { OperationOutcome, OperationOutcomeIssue } from 'fhir/r4';
import type { ErrorForm } from '../http/problem/problem.filter.js';
import type { Problem } from '../http/problem/problem.js';

/** The media type of FHIR in JSON (FHIR R4 §2.6.1.1). */
export const FHIR_JSON = 'application/fhir+json';

/** Issue types (hl7.org/fhir/R4/valueset-issue-type.html) of problems whose status does not determine the type. */
const BY_TYPE: Readonly<Record<string, OperationOutcomeIssue['code']>> = {
  'bad-search': 'value',
  'search-not-supported': 'not-supported',
  'data-unreadable': 'exception',
  'data-key-missing': 'exception',
};

/** Issue types by HTTP status. */
const BY_STATUS: Readonly<Record<number, OperationOutcomeIssue['code']>> = {
  400: 'invalid',
  401: 'login',
  403: 'forbidden',
  404: 'not-found',
  406: 'not-supported',
  408: 'timeout',
  409: 'conflict',
  413: 'too-long',
  414: 'too-long',
  415: 'not-supported',
  429: 'throttled',
  503: 'transient',
};

/** Renders a problem as an OperationOutcome. `details` holds its stable type, and `diagnostics` its words. */
export function operationOutcome({ status, type, detail, more }: Problem): OperationOutcome {
  const facts = Object.entries(more.extensions ?? {}).filter(([, value]) => /^(string|number)$/.test(typeof value));
  const named = facts.map(([name, value]) => `${name}: ${value}`).join(', ');
  return {
    resourceType: 'OperationOutcome',
    issue: [
      {
        severity: status >= 500 ? 'fatal' : 'error',
        code: BY_TYPE[type] ?? BY_STATUS[status] ?? (status >= 500 ? 'exception' : 'processing'),
        details: { coding: [{ system: 'urn:notebridge:problem', code: type }] },
        diagnostics: named === '' ? detail : `${detail} (${named})`,
      },
    ],
  };
}

/** The form of all errors below `/fhir`. */
export const FHIR_ERRORS: ErrorForm = {
  isOf: (path) => /^\/fhir(\/|$)/.test(path),
  mediaType: FHIR_JSON,
  body: operationOutcome,
};
