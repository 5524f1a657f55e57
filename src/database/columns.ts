import { Prisma } from '../generated/prisma/client.js';

/** The type in `pg` of a value of Prisma. */
type Value<T> = T extends bigint ? string : T extends Uint8Array ? Buffer : T;

type Scalars<Model extends Prisma.ModelName> = Prisma.TypeMap['model'][Model]['payload']['scalars'];

/** A row of a model, as `pg` reads it when it is selected with the names of the model's fields. */
export type Fields<Model extends Prisma.ModelName> = {
  [Field in keyof Scalars<Model>]: Value<Scalars<Model>[Field]>;
};

/**
 * SQL of all columns of a table `alias`, with the names of the model's fields.
 *
 * @param omitted a field
 */
export function allColumns(model: 'Session' | 'ComplianceJob', alias: string, omitted?: string): string {
  const columnOf = (field: string) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.values(Prisma[`${model}ScalarFieldEnum`])
    .filter((field) => field !== omitted)
    .map((field) => `${alias}.${columnOf(field)} AS "${field}"`)
    .join(', ');
}
