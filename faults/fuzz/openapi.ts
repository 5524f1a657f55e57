/** The parts of an OpenAPI 3.0 document that the fuzzer uses. */
export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface OperationObject {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema?: Schema;
}

export interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly type?: string;
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** One operation of the API. */
export interface Operation {
  readonly method: string;
  /** With `{name}` for parameters. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly bodies: readonly { readonly type: string; readonly schema: Schema }[];
}

/** All operations, in the order of the document. */
export function operationsOf(document: OpenApi): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      parameters,
      bodies: Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => ({ type, schema })),
    })),
  );
}

/** A schema without references, its `allOf` merged. */
export function resolved(schema: Schema, document: OpenApi): Schema {
  const { $ref, allOf = [], ...own } = schema;
  const named = $ref === undefined ? {} : document.components.schemas[$ref.replace('#/components/schemas/', '')];
  return Object.assign({}, ...[named ?? {}, ...allOf].map((part) => withoutReference(part, document)), own);
}

function withoutReference(schema: Schema, document: OpenApi): Schema {
  return schema.$ref || schema.allOf ? resolved(schema, document) : schema;
}
