import { Logger } from '@nestjs/common';
import { errorTrace } from '../problem/error-trace.js';
import { Problem } from '../problem/problem.js';

const log = new Logger('AfterCommit');

/**
 * Finds out what became of an intent that is committed. Whatever is thrown meanwhile, the caller gets what is known, with
 * the id: told that the request failed, it would send it again and have it done twice.
 *
 * @param outcome resolves to a Problem when the intent has certainly come to nothing
 * @param known the intent as it was committed
 * @throws {Problem} the one that `outcome` resolved to
 */
export async function afterCommit<T extends object>(outcome: () => Promise<T | Problem>, known: () => T): Promise<T> {
  const found = await outcome().catch((error: unknown) => {
    log.warn({ msg: 'what became of a request could not be read; it is answered as kept', ...errorTrace(error) });
    return known();
  });
  if (found instanceof Problem) throw found;
  return found;
}
