import { Problem } from '../http/problem/problem.js';
import { BIGINT } from '../http/request/page.js';

/**
 * The cursor behind which a reader goes on: the largest of those that it gives, for a reader that pages or resumes
 * often repeats the `after` with which it began; without any, the beginning.
 *
 * @param lastEventId the header Last-Event-ID (WHATWG HTML §9.2.4)
 * @throws {Problem} 400 `bad-cursor` when one of them is no cursor: going on from the beginning would send the reader
 *   everything once more
 */
export function startOf(lastEventId?: string, after?: string, cursor?: string): string {
  const places: [string | undefined, string | undefined][] = [
    [lastEventId, undefined],
    [after, '/after'],
    [cursor, '/cursor'],
  ];
  for (const [text, pointer] of places) {
    if (text === undefined || BIGINT.test(text)) continue;
    const detail = 'The cursor is not one of the feed; hand back that of the last event that was read, or none.';
    throw new Problem(400, 'bad-cursor', detail, { pointer });
  }
  const given = places.flatMap(([text]) => (text === undefined ? [] : [BigInt(text)]));
  return String([0n, ...given].sort((a, b) => Number(a - b)).at(-1));
}
