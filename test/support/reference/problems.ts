import { HINTS } from '../../../src/imports/parse/row/rejection.js';
import { PERSON_CODES } from '../../../src/words/person-words.js';
import { PROBLEM_TYPES } from '../../../src/words/problem-types.js';
import type { Word } from '../../../src/words/word.js';
import { codes, table } from './table.js';

/** Stands for the facts of a hint. */
const VARIES = '…';
const FACTS = {
  ...{ field: VARIES, expected: VARIES, limit: VARIES as never, found: VARIES as never },
  ...{ externalId: 'C-1', survivor: 'C-2' },
};

const ofPerson = ({ hint, action, why }: Word) =>
  action === undefined ? hint : `${hint} Recommended: "${action}". ${why}`;

/** docs/reference/problems.md: the types of problems, and the codes of people and of rejected rows. */
export function problemsPage(): string {
  const types = Object.entries(PROBLEM_TYPES).map(([type, [status, meaning]]) => [codes([type]), `${status}`, meaning]);
  const people = Object.entries<Word>(PERSON_CODES).map(([code, word]) => [codes([code]), ofPerson(word) ?? '']);
  const rows = Object.entries(HINTS).map(([code, hint]) => [codes([code]), hint(FACTS)]);
  return `# Problems and codes

For the EHR's engineer. Errors are RFC 9457 problem details (\`application/problem+json\`). Branch on \`type\`, which is
\`urn:notebridge:problem:\` and a type of the table. Show \`detail\`: what is wrong, and what to do. \`pointer\` is the JSON
Pointer of the invalid field. With \`retryAfterSeconds\` (and the header \`Retry-After\`) the same request may succeed later.

## Types

Any operation may answer any type that fits it; OpenAPI describes the members that only some types have.

${table(['type', 'status', 'meaning'], types)}

## Codes of people

In \`sync.error.code\` of a provider or a client, and in \`code\` of rows and events about them.

${table(['code', 'meaning'], people)}

## Codes of rejected rows

In \`code\` of an import's row, with \`field\` and \`hint\`. \`…\` is a part that varies.

${table(['code', 'meaning'], rows)}
`;
}
