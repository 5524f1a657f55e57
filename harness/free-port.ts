import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ephemeral ports and those of the embedded PostgreSQL, so that no other process takes one between the check and
 * its use, or while its server restarts.
 */
const FIRST = 10_000;
const AFTER_LAST = 20_000;

/** A port of 127.0.0.1 without a listener. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, AFTER_LAST);
    const probe = createServer().listen(port, '127.0.0.1');
    const isFree = await once(probe, 'listening').then(
      () => true,
      () => false, // it has a listener
    );
    if (!isFree) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
