import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';

/** The source of randomness, injected so that a failing seed can be replayed. */
@Injectable()
export class Random {
  /** A number in [0, 1), for jitter; not for secrets. */
  fraction(): number {
    return Math.random();
  }

  /** Bytes for keys, nonces and tokens. */
  bytes(count: number): Buffer {
    return randomBytes(count);
  }
}
