import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';

const BLOCK_BYTES = 16 * 1024;

/** Copies the chunks of a body into blocks. */
class Blocks extends Transform {
  private block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  private used = 0;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    for (let from = 0; from < chunk.length; ) {
      const copied = chunk.copy(this.block, this.used, from);
      from += copied;
      this.used += copied;
      if (this.used < BLOCK_BYTES) continue;
      this.push(this.block);
      this.block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.used = 0;
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    done(null, this.block.subarray(0, this.used));
  }
}

/**
 * A body in blocks of 16 KiB, for readers that keep its chunks until it ends, as Fastify does: a sender chooses the chunks
 * (RFC 9112 §7.1), and one of a byte occupies a hundred in memory.
 */
export function inBlocks(body: Readable): Readable {
  return pipeline(body, new Blocks(), () => undefined);
}
