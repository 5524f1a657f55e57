import { CAPABILITY_OPERATIONS } from '../../../src/platform/contract/capabilities.js';
import { Contract } from '../../../src/platform/contract/contract.js';
import { contractSchema, FILE_PARAMETERS } from '../../../src/platform/contract/contract-schema.js';
import { factsOf, OPERATION_NAMES, type OperationName } from '../../../src/platform/contract/operations.js';
import { codes, table } from './table.js';

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

function rows(schema: Schema, place: string): string[][] {
  return Object.entries(entriesOf(schema)).flatMap(([name, entry]) => {
    const own = place === '' ? name : `${place}.${name}`;
    const said = [descriptionOf(entry), `${ruleOf(entry)}.`].filter((text) => text !== undefined).join(' It ');
    return [[codes([own]), said.replace(/^must/, 'It must')], ...rows(entry, own)];
  });
}

function operation(name: OperationName): string {
  const facts = factsOf(name);
  const missing = Contract.of({ apiKey: { header: 'x' } }).missingFor(name);
  const short = missing.map((setting) => setting.replace(`operations.${name}.`, ''));
  const capabilities = Object.entries(CAPABILITY_OPERATIONS).filter(([, all]) => all.some((each) => each === name));
  const other = facts.otherPath ? `; the specification also writes ${codes([facts.otherPath])}` : '';
  const shown = facts.path ? `${codes([`${facts.method} ${facts.path}`])}${other}` : '';
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
    ['to be set', codes(short)],
    ['placeholders', codes([...facts.parameters, ...(facts.upload ? FILE_PARAMETERS : [])].map((each) => `{${each}}`))],
    ['`response` reads', pointers.join(', ')],
    ['also accepts', codes(more)],
  ].filter(([, said]) => said !== '');
  const list = lists.map(([what, said]) => `- ${what}: ${said}\n`).join('');
  return `### ${name}\n\n${facts.about} Capability: ${codes(capabilities.map(([each]) => each))}.\n\n${list}`;
}

/** docs/reference/contract.md: every field of the contract file, and which of them each operation needs. */
export function contractPage(): string {
  const schema = contractSchema as Schema;
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

For the person who [connects notebridge to the platform](../connect-the-platform.md). \`PLATFORM_CONTRACT\` names a JSON
file with what the platform told you and its specification does not show. Every field is optional. A start fails if the
file has an unknown or invalid field, and names each one. \`npx notebridge contract check\` lists faults and the
capabilities that are off. Editors read [contract.schema.json](contract.schema.json) (\`"$schema"\`), which is also
at \`/contract.schema.json\`. \`simulator/contract.json\` is a complete example.

## Fields

${table(['field', 'meaning'], rows({ entries: others }, ''))}

## Fields of each operation

Below \`operations\`, by the operation's name. Values that the specification shows are built in; you can override them.

${table(['field', 'meaning'], rows({ entries: fields }, ''))}

## Operations

${OPERATION_NAMES.map(operation).join('\n')}`;
}
