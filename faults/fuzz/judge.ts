import { problemTypeIn } from '../../harness/problem-type.js';
import { CLINICAL_WORD, PERSON_WORD } from './fit-values.js';
import type { FuzzRequest } from './request-maker.js';
import type { FuzzAnswer } from './send.js';

/** Which scopes may be shown what. */
const SHOWN: readonly (readonly [word: string, scopes: readonly string[]])[] = [
  [PERSON_WORD, ['all', 'people:read', 'imports']],
  [CLINICAL_WORD, ['all', 'notes:read']],
];

/** What only the inside of the service looks like. */
const INSIDE =
  /\bat [\w.<>]+ \(|node_modules|dist\/src|\.[jt]s:\d+|\bSELECT\b|\bINSERT INTO\b|\bUPDATE \w+ SET\b|prisma|ECONN|SQLSTATE|pg_catalog|\/tmp\/|\/home\//i;

/** Faults that a request can cause: a capability without its settings, and a hold. */
const EXPECTED = ['501 not-configured', '503 sending-held'];

const PREFIX = 'urn:notebridge:problem:';

/** Whether the machine has no time for the database now, as it may be where much else runs. */
export const isBusy = ({ status, text }: FuzzAnswer): boolean =>
  status === 503 && /problem:(database-unavailable|audit-unavailable|not-kept)|^\{"status":"down"/.test(text);

/** Which laws an answer breaks; none of what it holds. @param slugs every slug that the service's code has */
export function brokenLaws({ key, method }: FuzzRequest, answer: FuzzAnswer, slugs: ReadonlySet<string>): string[] {
  const { status, text } = answer;
  if (status === 'hang') return ['it is answered'];
  if (status === 'cut') return ['its connection is not cut'];
  const laws: string[] = [];
  const isRefused = status >= 400;
  for (const [word, scopes] of SHOWN) {
    if (text.toLowerCase().includes(word.toLowerCase()) && (isRefused || !scopes.includes(key))) {
      laws.push(`${word} is shown to those alone who may see it`);
    }
  }
  if (!isRefused) return isBrokenJson(answer) ? [...laws, 'an answer of JSON is whole'] : laws;
  if (INSIDE.test(text)) laws.push('an error says nothing of the inside');
  if (method === 'HEAD') return status >= 500 ? [...laws, `no ${status}`] : laws;
  const slug = slugOf(answer);
  if (slug === undefined) laws.push('an error is problem details, or an OperationOutcome of FHIR');
  else if (!slugs.has(slug)) laws.push(`the slug ${slug} is known`);
  if (status >= 500 && !EXPECTED.includes(`${status} ${slug}`)) laws.push(`no ${status} ${slug ?? ''}`);
  return laws;
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
