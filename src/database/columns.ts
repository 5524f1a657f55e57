import { Prisma } from '../generated/prisma/client.js';

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
