/** The time, in ISO 8601, and the id of the last row of a page. */
export type Place = readonly [time: string, id: string];

/**
 * The condition of rows after one of a list that is ordered by a time and by id. The first part is what an index finds;
 * Prisma's `cursor` reads the whole list.
 *
 * @param time in ISO 8601; its column has milliseconds, because Prisma's times have no microseconds
 */
export const after = <Field extends string>(field: Field, time: string, id: string) =>
  ({
    [field]: { gte: new Date(time) },
    OR: [{ [field]: { gt: new Date(time) } }, { id: { gt: id } }],
  }) as Record<Field, { gte: Date }>;

/** As `after`, for a list that is ordered by a time and by id, both descending. */
export const before = <Field extends string>(field: Field, time: string, id: string) =>
  ({
    [field]: { lte: new Date(time) },
    OR: [{ [field]: { lt: new Date(time) } }, { id: { lt: id } }],
  }) as Record<Field, { lte: Date }>;
