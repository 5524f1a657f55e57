import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that systems give to outgoing connections and to whoever asks for any, and below those of the embedded
 * PostgreSQL: nobody else takes one in the time between the look and its use, or while a server that had it is away.
 */
const FIRST = 10_000;
const AFTER_LAST = 20_000;

/** A port of 127.0.0.1 that nobody listens on just now. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, AFTER_LAST);
    const probe = createServer().listen(port, '127.0.0.1');
    const isFree = await once(probe, 'listening').then(
      () => true,
      () => false, // somebody listens there
    );
    if (!isFree) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
