import { Global, Module } from '@nestjs/common';
import { Idempotency } from './idempotency.js';

/** What was asked for twice. */
@Global()
@Module({ providers: [Idempotency], exports: [Idempotency] })
export class IdempotencyModule {}
