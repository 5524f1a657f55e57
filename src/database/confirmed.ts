import { isDatabaseUnavailable } from '../http/problem/database-fault.js';

/**
 * Runs work once more when the database went away meanwhile: its commit may stand although nobody confirmed it, and
 * whoever asked would ask again.
 *
 * @param work must find what it did itself before
 */
export async function confirmed<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    return work();
  }
}
