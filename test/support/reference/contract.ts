import { CAPABILITY_OPERATIONS } from '../../../src/platform/contract/capabilities.js';
import { Contract } from '../../../src/platform/contract/contract.js';
import { contractSchema, FILE_PARAMETERS } from '../../../src/platform/contract/contract-schema.js';
import { factsOf, OPERATION_NAMES, type OperationName } from '../../../src/platform/contract/operations.js';

/** The parts of a valibot schema that the page shows. */
interface Schema {
  type?: string;
  message?: string;
  wrapped?: Schema;
  entries?: Record<string, Schema>;
  description?: string;
  pipe?: Schema[];
}

/** A schema and the schemas that it wraps, from the outside in. */
const parts = (schema: Schema): Schema[] => [
  schema,
  ...(schema.wrapped ? parts(schema.wrapped) : []),
  ...(schema.pipe ?? []).filter((part) => part !== schema).flatMap(parts),
];

const descriptionOf = (schema: Schema) => parts(schema).find(({ description }) => description)?.description;
const ruleOf = (schema: Schema) => parts(schema).find(({ message }) => message)?.message;
const entriesOf = (schema: Schema = {}) => parts(schema).find(({ entries }) => entries)?.entries ?? {};
const isTaken = (schema: Schema) => parts(schema).every(({ type }) => type !== 'never');

function lines(schema: Schema, place: string): string[] {
  return Object.entries(entriesOf(schema)).flatMap(([name, entry]) => {
    const own = place === '' ? name : `${place}.${name}`;
    const said = [descriptionOf(entry), `${ruleOf(entry)}.`].filter((text) => text !== undefined).join(' It ');
    return [`- \`${own}\`: ${said.replace(/^must/, 'It must')}`, ...lines(entry, own)];
  });
}

const words = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');

function operation(name: OperationName): string {
  const facts = factsOf(name);
  const missing = Contract.of({ apiKey: { header: 'x' } }).missingFor(name, facts.upload ? 'upload' : 'call');
  const short = missing.map((setting) => setting.replace(`operations.${name}.`, ''));
  const capabilities = Object.entries(CAPABILITY_OPERATIONS).filter(([, all]) => all.some((each) => each === name));
  const shown = facts.path ? `\`${facts.method} ${facts.path}\`` : '';
  const pointers = [
    ...Object.entries(facts.response).map(([field, pointer]) => `\`${field}\` (\`${JSON.stringify(pointer)}\`)`),
    ...[...facts.needs, ...facts.mayRead].map((field) => `\`${field}\``),
  ];
  const more = [
    ...(facts.bodyIsShown ? [] : ['body']),
    ...(facts.upload ? ['upload'] : []),
    ...(facts.endStates ? ['states'] : []),
  ];
  const lists = [
    ['built in', shown],
    ['to be set', words(short)],
    ['placeholders', words([...facts.parameters, ...(facts.upload ? FILE_PARAMETERS : [])].map((each) => `{${each}}`))],
    ['`response` reads', pointers.join(', ')],
    ['takes, too', words(more)],
  ].filter(([, said]) => said !== '');
  const list = lists.map(([what, said]) => `- ${what}: ${said}\n`).join('');
  return `### ${name}\n\n${facts.about} Capability: ${words(capabilities.map(([each]) => each))}.\n\n${list}`;
}

/** docs/reference/contract.md: every field of the contract file, and which of them each operation needs. */
export function contractPage(): string {
  const schema = contractSchema({}) as Schema;
  const { operations, ...others } = entriesOf(schema);
  const of = (name: string) => Object.entries(entriesOf(entriesOf(operations)[name])).filter(([, one]) => isTaken(one));
  const fields = Object.fromEntries(
    OPERATION_NAMES.flatMap(of).map(([name, one]) => [
      name,
      name === 'response'
        ? { ...one, wrapped: { message: ruleOf(one), description: descriptionOf(one) }, pipe: [] }
        : one,
    ]),
  );
  return `# The contract file

\`PLATFORM_CONTRACT\` names a JSON file with what the platform told you and its specification does not show. It is read at
the start, which fails with every fault; a field that is not named here is a fault. Everything may be left out.
\`npx notebridge contract check\` lists faults, doubts and what is off; [contract.schema.json](contract.schema.json) is
for editors (\`"$schema"\`), also at \`/contract.schema.json\`. \`simulator/contract.json\` is a complete example.

## Fields

${lines({ entries: others }, '').join('\n')}

## Fields of each operation

Below \`operations\`, by the operation's name; what the specification shows is built in and may be overridden.

${lines({ entries: fields }, '').join('\n')}

## Operations

${OPERATION_NAMES.map(operation).join('\n')}`;
}
