import { Prisma } from '../generated/prisma/client.js';

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : '';

/** The type in `pg` of a value of Prisma. */
type Value<T> = T extends bigint ? string : T extends Uint8Array ? Buffer : T;

type Scalars<Model extends Prisma.ModelName> = Prisma.TypeMap['model'][Model]['payload']['scalars'];

/** The type in `pg` of a row of a model, with column names derived from its fields. */
export type Columns<Model extends Prisma.ModelName> = {
  [Field in keyof Scalars<Model> & string as SnakeCase<Field>]: Value<Scalars<Model>[Field]>;
};

/** The same with the names of the fields. */
export type Fields<Model extends Prisma.ModelName> = {
  [Field in keyof Scalars<Model>]: Value<Scalars<Model>[Field]>;
};

/** The column of each field of a person. */
export const PERSON_COLUMNS = Object.fromEntries(
  Object.values(Prisma.PersonScalarFieldEnum).map((field) => [
    field,
    field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  ]),
) as Record<keyof Fields<'Person'>, string>;
