import { problemTypeIn } from '../../harness/problem-type.js';
import { CLINICAL_WORD, PERSON_WORD } from './fit-values.js';
import type { FuzzRequest } from './request-maker.js';
import type { FuzzAnswer } from './send.js';

/** Scopes whose callers may see each word. */
const SHOWN: readonly (readonly [word: string, scopes: readonly string[]])[] = [
  [PERSON_WORD, ['all', 'people:read', 'imports']],
  [CLINICAL_WORD, ['all', 'notes:read']],
];

/** Matches internals of the service, such as stack traces. */
const INSIDE =
  /\bat [\w.<>]+ \(|node_modules|dist\/src|\.[jt]s:\d+|\bSELECT\b|\bINSERT INTO\b|\bUPDATE \w+ SET\b|prisma|ECONN|SQLSTATE|pg_catalog|\/tmp\/|\/home\//i;

/** 5xx that a request may cause: a capability without its settings, and a hold. */
const EXPECTED = ['501 not-configured', '503 sending-held'];

const PREFIX = 'urn:notebridge:problem:';

/** True if the machine is too busy for the database at present. */
export const isBusy = ({ status, text }: FuzzAnswer): boolean =>
  status === 503 && /problem:(database-unavailable|audit-unavailable|not-kept)|^\{"status":"down"/.test(text);

/** The invariants that an answer violates, without its content. @param slugs every slug in the service's code */
export function violationsOf({ key, method }: FuzzRequest, answer: FuzzAnswer, slugs: ReadonlySet<string>): string[] {
  const { status, text } = answer;
  if (status === 'hang') return ['the request gets an answer'];
  if (status === 'cut') return ['the connection is not cut'];
  const invariants: string[] = [];
  const isRefused = status >= 400;
  for (const [word, scopes] of SHOWN) {
    if (text.toLowerCase().includes(word.toLowerCase()) && (isRefused || !scopes.includes(key))) {
      invariants.push(`only callers with the right scope see ${word}`);
    }
  }
  if (!isRefused) return isBrokenJson(answer) ? [...invariants, 'a JSON answer is complete'] : invariants;
  if (INSIDE.test(text)) invariants.push('an error shows no internals');
  if (method === 'HEAD') return status >= 500 ? [...invariants, `no ${status}`] : invariants;
  const slug = slugOf(answer);
  if (slug === undefined) invariants.push('an error is problem details, or an OperationOutcome of FHIR');
  else if (!slugs.has(slug)) invariants.push(`the slug ${slug} is known`);
  if (status >= 500 && !EXPECTED.includes(`${status} ${slug}`)) invariants.push(`no ${status} ${slug ?? ''}`);
  return invariants;
}

function isBrokenJson({ type, text }: FuzzAnswer): boolean {
  if (text === '' || !type.startsWith('application/json')) return false;
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}

function slugOf({ type, text, status }: FuzzAnswer): string | undefined {
  if (type.startsWith('application/fhir+json')) return outcomeSlugOf(text);
  if (!type.startsWith('application/problem+json')) return undefined;
  try {
    const problem = JSON.parse(text) as { type?: unknown; title?: unknown; status?: unknown; detail?: unknown };
    const isWhole =
      typeof problem.title === 'string' && typeof problem.detail === 'string' && problem.status === status;
    return isWhole && String(problem.type).startsWith(PREFIX) ? String(problem.type).slice(PREFIX.length) : undefined;
  } catch {
    return undefined;
  }
}

/** The type of the problem in an OperationOutcome of FHIR. */
function outcomeSlugOf(text: string): string | undefined {
  try {
    const outcome = JSON.parse(text) as Parameters<typeof problemTypeIn>[0] & { resourceType?: unknown };
    return outcome.resourceType === 'OperationOutcome' ? problemTypeIn(outcome) : undefined;
  } catch {
    return undefined;
  }
}
