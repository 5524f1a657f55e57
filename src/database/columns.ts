import { Prisma } from '../generated/prisma/client.js';

/** The type in `pg` of a value of Prisma. */
type Value<T> = T extends bigint ? string : T extends Uint8Array ? Buffer : T;

type Scalars<Model extends Prisma.ModelName> = Prisma.TypeMap['model'][Model]['payload']['scalars'];

/** A row of a model, as `pg` reads it when it is selected with the names of the model's fields. */
export type Fields<Model extends Prisma.ModelName> = {
  [Field in keyof Scalars<Model>]: Value<Scalars<Model>[Field]>;
};

/** Fields whose column has another name, because a relation has the name of the column. */
const OTHER_NAMES: Record<string, string> = { ourSessionId: 'session' };

const columns = new Map<string, Record<string, string>>();

/** The column of each field of a model. */
export function columnsOf<Model extends 'Person' | 'Session' | 'ProcessingSession' | 'ComplianceJob'>(
  model: Model,
): Record<keyof Fields<Model>, string> {
  const known = columns.get(model);
  if (known) return known as Record<keyof Fields<Model>, string>;
  const fields = Object.values(Prisma[`${model}ScalarFieldEnum`]);
  const columnOf = (field: string) =>
    OTHER_NAMES[field] ?? field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const found = Object.fromEntries(fields.map((field) => [field, columnOf(field)]));
  columns.set(model, found);
  return found as Record<keyof Fields<Model>, string>;
}

/** The column of each field of a person. */
export const PERSON_COLUMNS = columnsOf('Person');

/** SQL assignments of fields. @param first number of the first parameter */
export function assignments<Model extends Parameters<typeof columnsOf>[0]>(
  model: Model,
  fields: Partial<Fields<Model>>,
  first: number,
): { set: string; values: unknown[] } {
  const columns: Record<string, string> = columnsOf(model);
  const set = Object.keys(fields).map((field, place) => `${columns[field]} = $${first + place}`);
  return { set: set.join(', '), values: Object.values(fields) };
}

/** SQL of all columns of a table `alias`, with the names of the model's fields. @param omitted a field */
export function allColumns(model: Parameters<typeof columnsOf>[0], alias: string, omitted?: string): string {
  return Object.entries(columnsOf(model))
    .filter(([field]) => field !== omitted)
    .map(([field, column]) => `${alias}.${column} AS "${field}"`)
    .join(', ');
}
