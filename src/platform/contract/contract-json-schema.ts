import { contractSchema } from './contract-schema.js';

type JsonSchema = Record<string, unknown>;

/** The parts of a Valibot schema or of an item of its pipe that are converted. */
interface Node {
  type: string;
  pipe?: readonly Node[];
  wrapped?: Node;
  default?: unknown;
  entries?: Readonly<Record<string, Node>>;
  options?: readonly string[];
  key?: Node;
  value?: Node;
  description?: string;
  metadata?: JsonSchema;
}

/**
 * The JSON Schema of the contract file, for editors. It accepts every file that the service accepts, and a few more:
 * rules between settings are checked only by `notebridge contract check`.
 */
export function contractJsonSchema(): JsonSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'The contract file of notebridge, which PLATFORM_CONTRACT names',
    ...convert(contractSchema({}) as unknown as Node),
  };
}

/** @returns undefined for a setting that is not known */
function convert(node: Node): JsonSchema | undefined {
  if (!node.pipe) return convertOne(node);
  const parts = node.pipe.map(convertOne);
  return parts.includes(undefined) ? undefined : Object.assign({}, ...parts);
}

function convertOne(node: Node): JsonSchema | undefined {
  switch (node.type) {
    case 'never':
      return undefined;
    case 'optional':
      return node.wrapped && convert(node.wrapped);
    case 'nullable':
      return { anyOf: [node.wrapped && convert(node.wrapped), { type: 'null' }] };
    case 'string':
      return { type: 'string' };
    case 'picklist':
      return { enum: node.options };
    case 'description':
      return { description: node.description };
    case 'metadata':
      return node.metadata;
    case 'record':
      return {
        type: 'object',
        propertyNames: node.key && convert(node.key),
        additionalProperties: node.value && convert(node.value),
      };
    case 'object_with_rest':
      return objectOf(node.entries ?? {});
    default:
      return node.pipe ? convert(node) : {};
  }
}

function objectOf(entries: Readonly<Record<string, Node>>): JsonSchema {
  const known = Object.entries(entries).flatMap(([name, entry]) => {
    const schema = convert(entry);
    return schema ? [[name, schema] as const] : [];
  });
  // A default replaces a missing setting, so that its rule reports it.
  const required = known.map(([name]) => name).filter((name) => entries[name]?.default !== undefined);
  return {
    type: 'object',
    properties: Object.fromEntries(known),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}
