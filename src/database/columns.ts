import type { Prisma } from '../generated/prisma/client.js';

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : '';

/** A value of Prisma's as `pg` gives it. */
type Value<T> = T extends bigint ? string : T extends Uint8Array ? Buffer : T;

type Scalars<Model extends Prisma.ModelName> = Prisma.TypeMap['model'][Model]['payload']['scalars'];

/** A row of a model's table as `pg` gives it; of columns whose names differ from their field's, the field's name counts. */
export type Columns<Model extends Prisma.ModelName> = {
  [Field in keyof Scalars<Model> & string as SnakeCase<Field>]: Value<Scalars<Model>[Field]>;
};
