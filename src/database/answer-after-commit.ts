import { Logger } from '@nestjs/common';
import { errorTrace } from '../errors/error-trace.js';
import { Problem } from '../http/problem/problem.js';

const log = new Logger('AfterCommit');

/**
 * Reads the outcome of a committed intent; a Problem is thrown. If the read fails, the caller gets the intent as it was
 * committed, because after an error it would repeat the request and duplicate its effect.
 */
export async function afterCommit<T extends object>(outcome: () => Promise<T | Problem>, known: () => T): Promise<T> {
  const found = await outcome().catch((error: unknown) => {
    log.warn({ msg: 'could not read the outcome of a request; it is answered as accepted', ...errorTrace(error) });
    return known();
  });
  if (found instanceof Problem) throw found;
  return found;
}
