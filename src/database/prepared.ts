import { createHash } from 'node:crypto';

const names = new Map<string, string>();

/**
 * A statement that each connection plans once, because planning costs more than running it.
 *
 * @param text one of a bounded number of texts, because a connection keeps the plan of each; its best plan must not depend
 *   on its values
 */
export function prepared(text: string, values: unknown[]): { name: string; text: string; values: unknown[] } {
  let name = names.get(text);
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('hex').slice(0, 16);
    names.set(text, name);
  }
  return { name, text, values };
}
